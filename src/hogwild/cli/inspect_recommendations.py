"""Recommendations for a data set, in words, derived from its statistics."""

from __future__ import annotations

from hogwild.data.statistics import LabelStatistics, Statistics

SMALL = 10**6  # non-zeros that one core processes in a few milliseconds
LARGE = 2**29  # size of a file in bytes from which packing pays
# Share of a row's features that a random other row also has, from which on lock-free workers harm the result.
CROWDED = 0.5
# Mean number of features common to two rows, from which on each update moves a cache line between cores.
BUSY = 1.0
RARE_CLASS = 0.05


def advise(found: Statistics, *, cores: int, file_bytes: int = 0, packed: bool = False) -> list[str]:
    """Return the recommended strategy, rule and loss for the data, and warnings about the data.

    The strategy depends on the number of features that two random rows have in common, because workers collide in them.
    """
    return [
        *_about_workers(found, cores),
        *_about_labels(found.labels),
        *_about_features(found),
        *_about_files(file_bytes, packed),
    ]


def _about_workers(found: Statistics, cores: int) -> list[str]:
    shared = found.crowding / max(found.mean_nonzeros, 1e-12)
    if shared >= CROWDED:
        advice = (
            f"Any two rows have {shared:.0%} of their features in common: lock-free workers would fight over them. "
            "Use --strategy averaging (each worker trains a copy), or one or two workers."
        )
    elif found.crowding >= BUSY:
        advice = (
            f"Two rows have {found.crowding:.1f} features in common ({shared:.0%} of a row), the frequent ones, and "
            "cores pass those to and fro: use --strategy hogwild with few workers, and compare it with serial and "
            "averaging."
        )
    else:
        advice = (
            f"Two rows have {found.crowding:.2g} features in common: --strategy hogwild suits, with up to {cores} "
            "workers here (as many as there are cores)."
        )
    if found.nonzeros >= SMALL:
        return [advice]
    return [f"The data is small ({found.nonzeros:,} non-zeros): --strategy serial is hard to beat.", advice]


def _about_labels(labels: LabelStatistics) -> list[str]:
    if labels.kind == "constant":
        return [f"Every label is {labels.low:g}: there is nothing to learn. Is the right column the label?"]
    if labels.kind == "two classes":
        rare = min(labels.counts.values()) / sum(labels.counts.values())
        advice = ["Two classes: --loss logistic (gives probabilities) or --loss hinge (a linear SVM)."]
        if rare < RARE_CLASS:
            advice.append(f"One class has only {rare:.2%} of the rows: weigh the classes, and look beyond accuracy.")
        return advice
    if labels.kind == "classes":
        return [f"{len(labels.counts)} classes: --loss logistic or hinge (one against the rest), or --loss softmax."]
    advice = ["Labels are quantities: --loss squared, or --loss huber when some are far off."]
    if labels.low >= 0:
        advice.append("None is negative: if they are counts, --loss poisson.")
    return advice


def _about_features(found: Statistics) -> list[str]:
    advice = []
    if found.ever_present and found.layout != "dense":
        which = "One feature is" if found.ever_present == 1 else f"{found.ever_present:,} features are"
        advice.append(f"{which} in every row and will act like an intercept, which every worker writes: best left out.")
    if found.empty_rows:
        which = "One row has" if found.empty_rows == 1 else f"{found.empty_rows:,} rows have"
        advice.append(f"{which} no features at all: only the intercept can say something about them.")
    if found.layout == "binary":
        advice.append("Every value is 1: values are not stored, which halves the memory.")
    if found.layout == "sparse" and found.delta > 0.1 and found.crowding / max(found.mean_nonzeros, 1e-12) < CROWDED:
        advice.append("Features differ much in frequency: --rule adagrad gives each a step size of its own.")
    if found.features >= 2**20 and found.used_features < found.features / 100:
        advice.append(
            f"Only {found.used_features:,} of {found.features:,} columns are used: fewer (--bits, --features) would "
            "make a smaller model."
        )
    return advice


def _about_files(file_bytes: int, packed: bool) -> list[str]:
    if packed or file_bytes < LARGE:
        return []
    return ["The file is large: 'hogwild pack' it once, then every run starts at once and needs little memory."]
