"""
Recommend films
===============

Learn from ratings, see how good the predictions are on others, recommend, and take in a new user.

.. code-block:: console

   $ python examples/films.py [RATINGS] [--draw]

RATINGS is a file of MovieLens (ratings.csv, u.data or ratings.dat) or any text or Parquet file with a user, an item
and a rating in each line. Without one, ratings are generated.
"""

from __future__ import annotations

import sys

import numpy as np

from hogwild import HogwildRecommender
from hogwild.data.generate.ratings import GeneratedRatings
from hogwild.data.ratings import Ratings, open_ratings


def names(ratings: Ratings) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The columns of ratings, with the names that users and items have."""
    users, items, values = ratings.columns
    return ratings.users.names[users], ratings.items.names[items], values


def draw_predictions(ratings: np.ndarray, predictions: np.ndarray) -> None:
    """Draw what was predicted for held-out ratings, by the rating that was given."""
    import matplotlib.pyplot as plt

    given = np.unique(ratings)
    _, axes = plt.subplots(figsize=(7, 4))
    axes.violinplot([predictions[ratings == rating] for rating in given], given, showmedians=True)
    axes.set(xlabel="held-out rating", ylabel="prediction")
    plt.show()


def main(path: str = "", rows: int = 100_000, draw: bool = False) -> float:
    ratings = open_ratings(path) if path else GeneratedRatings(rows // 40, rows // 80, rows, rank=5).data
    training, held_out = ratings.split(0.1, seed=0)
    model = HogwildRecommender(rank=32, random_state=0).fit(names(training))
    rmse = -model.score(names(held_out))
    spread = float(names(held_out)[2].std())
    if draw:
        draw_predictions(names(held_out)[2], model.predict(names(held_out)[:2]))
    print(f"{training.n_rows:,} ratings; held-out RMSE {rmse:.4f}, of the mean alone {spread:.4f}")

    somebody = names(training)[0][0]
    items, scores = model.recommend(somebody, 5)
    print(f"to {somebody}:", ", ".join(f"{item} ({score:.2f})" for item, score in zip(items, scores, strict=True)))
    print(f"like {items[0]}:", ", ".join(str(item) for item in model.similar_items(items[0], 5)[0]))

    best, worst = ratings.items.names[0], ratings.items.names[1]
    newcomer = "somebody new" if ratings.users.names.dtype.kind == "U" else int(ratings.users.names.max()) + 1
    for _ in range(20):
        model.partial_fit(([newcomer, newcomer], [best, worst], [5.0, 1.0]))
    liked, disliked = model.predict(([newcomer, newcomer], [best, worst]))
    print(f"somebody new gave 5 and 1, and is now predicted to give {liked:.2f} and {disliked:.2f}")
    return rmse


if __name__ == "__main__":
    main(*(word for word in sys.argv[1:] if word != "--draw"), draw="--draw" in sys.argv)
