"""
Text in a scikit-learn pipeline
===============================

Hashed words, a pipeline, and batches that are never in memory together. The texts are made up: each is about a sport
or about the stars, with words of both in between.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

from hogwild import HogwildClassifier

COMMON = ["the", "a", "of", "and", "they", "then", "was", "very", "with", "for", "about", "from"]
TOPICS = {
    "sport": ["ball", "team", "goal", "match", "coach", "league", "score", "season", "player", "stadium"],
    "space": ["star", "orbit", "rocket", "planet", "moon", "telescope", "launch", "galaxy", "probe", "comet"],
}


def texts(count: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Made-up texts and what they are about."""
    rng = np.random.default_rng(seed)
    names = sorted(TOPICS)
    about = rng.choice(names, count)

    def text(topic: str) -> str:
        other = names[1 - names.index(topic)]
        strays = rng.binomial(8, 0.3)
        words = [*rng.choice(COMMON, 12), *rng.choice(TOPICS[topic], 8 - strays), *rng.choice(TOPICS[other], strays)]
        return " ".join(words)

    return [text(topic) for topic in about], about


def batches(count: int, size: int) -> Iterator[tuple[list[str], np.ndarray]]:
    """The same texts in batches, as they would come from a disk or a network."""
    for number in range(-(-count // size)):
        yield texts(min(size, count - number * size), seed=number)


def main(count: int = 20_000) -> None:
    held_out, about = texts(count // 4, seed=10_000)
    words = HashingVectorizer(n_features=2**16, dtype=np.float32, alternate_sign=False)

    pipeline = make_pipeline(words, HogwildClassifier("log_loss", n_jobs=2, random_state=0))
    pipeline.fit(*texts(count, seed=0))
    print(f"in one fit:         {pipeline.score(held_out, about):.1%} right")

    model = HogwildClassifier("log_loss", random_state=0)
    for batch, labels in batches(count, size=max(100, count // 20)):
        model.partial_fit(words.transform(batch), labels, classes=sorted(TOPICS))
    print(f"batch after batch:  {model.score(words.transform(held_out), about):.1%} right")

    calibrated = CalibratedClassifierCV(make_pipeline(words, HogwildClassifier("hinge", random_state=0)), cv=3)
    calibrated.fit(*texts(count, seed=0))
    chances = calibrated.predict_proba(held_out)
    print(f"an SVM, calibrated: log loss {log_loss(about, chances):.3f} (guessing: {np.log(2):.3f})")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
