"""Encoding of the user's labels as numbers for kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.dataset import Dataset, look_like_numbers
from hogwild.errors import DataError, ParameterError
from hogwild.losses import Loss
from hogwild.registry import invalid_parameter

ClassWeight = Mapping[float, float] | Literal["balanced"] | None


@dataclass(frozen=True, slots=True, eq=False)
class LabelEncoding:
    """Encoding of labels as -1 and 1, as class numbers, or as the numbers themselves.

    >>> LabelEncoding(np.array([3.0, 7.0])).encode(np.array([7.0, 3.0]))
    array([ 1., -1.], dtype=float32)
    """

    classes: Array | None  # Sorted class labels; None if the labels are numbers to predict.
    counts: bool = False
    precision: str = "float32"  # Type of encoded labels and of weights.

    @property
    def outputs(self) -> int:
        """The number of scores of the model: one, or one per class."""
        return 1 if self.classes is None or len(self.classes) == 2 else len(self.classes)

    def encode(self, labels: Array, name: str | None = None) -> Array:
        """Encode the labels of data.

        Raises
        ------
        DataError
            If a label did not occur in training, or if a count is negative.
        """
        if self.classes is None:
            if self.counts and labels.size and labels.min() < 0:
                row = int(np.argmax(labels < 0))
                raise DataError(
                    f"the label {labels[row]:g} is negative", path=name, remedy="Poisson loss is for counts."
                )
            return labels.astype(self.precision)
        if len(self.classes) == 2:
            at = (labels == self.classes[1]).astype(np.int8)
        else:
            at = np.minimum(np.searchsorted(self.classes, labels), len(self.classes) - 1)
        unknown = self.classes[at] != labels
        if unknown.any():
            known = ", ".join(f"{c:g}" for c in self.classes[:10]) + (", ..." if len(self.classes) > 10 else "")
            label = labels[int(np.argmax(unknown))]
            raise DataError(
                f"the label {label:g} is not one of the classes the model knows ({known})",
                path=name,
                remedy="Train and test files must use the same labels.",
            )
        encoded: Array = (2 * at - 1 if len(self.classes) == 2 else at).astype(self.precision)
        return encoded

    def weights(self, class_weight: ClassWeight, data: Dataset) -> Array:
        """Return a weight for each class (or for -1 and 1); for numbers, all weights are 1.

        Raises
        ------
        ParameterError
            If the class weights do not suit the labels.
        """
        if class_weight is None:
            return np.ones(2 if self.classes is None else len(self.classes), self.precision)
        if self.classes is None:
            raise ParameterError("The 'class_weight' parameter is for classes. With this loss the labels are numbers.")
        if class_weight == "balanced":
            known, counts = data.label_counts() or (self.classes, np.ones(len(self.classes)))
            rows = np.ones(len(self.classes))
            rows[np.searchsorted(self.classes, known)] = counts
            return np.asarray(rows.sum() / (len(rows) * rows), self.precision)
        if not isinstance(class_weight, Mapping):
            raise invalid_parameter("class_weight", "a mapping from label to weight, 'balanced' or None", class_weight)
        unknown = [label for label in class_weight if label not in self.classes]
        if unknown:
            raise ParameterError(
                f"The 'class_weight' parameter names the label {unknown[0]!r}, which is not in the data."
            )
        if not all(0 <= weight < float("inf") for weight in class_weight.values()):
            raise invalid_parameter("class_weight", "finite weights of at least 0", dict(class_weight))
        return np.array([class_weight.get(float(c), 1.0) for c in self.classes], self.precision)

    def describe(self) -> list[float] | None:
        """Return the classes as plain numbers, or None."""
        return None if self.classes is None else [float(c) for c in self.classes]


def label_encoding_for(loss: Loss, data: Dataset) -> LabelEncoding:
    """Return the encoding of labels that a loss requires.

    Raises
    ------
    DataError
        If the loss cannot use these labels.
    """
    found = data.label_counts() if loss.targets in ("classes", "any") else None
    if loss.targets == "any" and found is not None and found[0].tolist() == [-1, 1]:
        return LabelEncoding(found[0])
    if loss.targets != "classes":
        if loss.targets != "any":
            _check_numbers(loss, data)
        return LabelEncoding(None, counts=loss.targets == "counts")
    classes = data.labels()[:2] if found is None else found[0]
    if len(classes) < 2:
        raise DataError(
            f"every label is {classes[0]:g}", path=data.name, remedy=f"The loss '{loss}' needs at least two classes."
        )
    fractions = found is None or (len(classes) > 2 and (classes != np.round(classes)).any())
    if fractions or look_like_numbers(len(classes), data.n_rows):
        raise DataError(
            f"the labels are numbers such as {classes[0]:g} and {classes[1]:g}, not classes",
            path=data.name,
            remedy=f"The loss '{loss}' is for classes. For numbers use 'squared' or 'huber'.",
        )
    return LabelEncoding(classes)


def _check_numbers(loss: Loss, data: Dataset) -> None:
    """Raise DataError if the labels of a table are texts, which are numbered, and the loss is for numbers."""
    texts = None if data.encoding is None else data.encoding.classes
    if texts is None:
        return
    some = " and ".join(repr(text) for text in texts[:2])
    raise DataError(
        f"the labels are texts such as {some}, not numbers",
        path=data.name,
        remedy=f"The loss '{loss}' is for numbers. For classes use 'logistic' or 'hinge'.",
    )
