"""Inputs of an estimator: arrays in scikit-learn's order of rows, or files and data sets as in ``hogwild``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, csr_matrix, sparray, spmatrix

from hogwild.data import InMemoryDataset
from hogwild.data import open as open_data
from hogwild.data.chunks import number_type, row_numbers
from hogwild.data.csr import NO_INDICES, NO_WEIGHTS, Array, CSRRows, Layout
from hogwild.data.dataset import Dataset
from hogwild.data.min_max import WORTH_A_THREAD, min_max
from hogwild.data.reader import ReadOptions
from hogwild.errors import DataError, HogwildError, ParameterError
from hogwild.files import parse_size
from hogwild.jit import compiled

MatrixLike = ArrayLike | sparray | spmatrix
"""Rows in memory: an array, nested lists, a data frame or a sparse matrix."""

Source = str | Path | Sequence[str | Path] | Dataset
"""Rows with labels and weights of their own: a file, a packed folder, several files or an open data set."""

Rows = MatrixLike | Source
"""Everything that an estimator accepts as ``X``."""

RandomState = int | np.random.RandomState | None
"""Everything that an estimator accepts as ``random_state``."""

LARGEST_SEED = np.iinfo(np.int32).max
_NOT_ZERO = np.uint32(1)  # replacement for the seed 0: a xorshift generator never leaves the state 0


class Reshuffled:
    """Order of rows of ``SequentialDataset.shuffle``: each epoch shuffles the order of the epoch before, with one seed.

    ``rows`` counts all rows. Rows that early stopping holds out also take part in the shuffle, as in scikit-learn.

    >>> order = Reshuffled(5)
    >>> [order(np.arange(5), 7, epoch).tolist() for epoch in (0, 1, 0)]
    [[3, 4, 1, 2, 0], [2, 0, 4, 1, 3], [3, 4, 1, 2, 0]]
    """

    def __init__(self, rows: int) -> None:
        self._rows, self._seed, self._epochs = rows, -1, 0
        self._order = np.empty(0, number_type(rows))

    def __call__(self, ids: Array, seed: int, number: int) -> Array:
        if seed != self._seed or number + 1 < self._epochs:
            self._seed, self._epochs, self._order = seed, 0, np.arange(self._rows, dtype=number_type(self._rows))
        while self._epochs < number + 1:
            _shuffle(self._order, np.uint32(seed))
            self._epochs += 1
        if len(ids) == self._rows:
            return self._order.copy()
        among = np.zeros(self._rows, bool)
        among[ids] = True
        return self._order[among[self._order]]


@compiled
def _shuffle(order: Array, seed: np.uint32) -> None:
    """Shuffle in place by Fisher and Yates, with the 32-bit xorshift generator of Marsaglia (2003)."""
    state = np.uint32(seed) if seed != 0 else _NOT_ZERO
    for at in range(order.size - 1):
        state ^= np.uint32(state << np.uint32(13))
        state ^= np.uint32(state >> np.uint32(17))
        state ^= np.uint32(state << np.uint32(5))
        chosen = at + (state & np.uint32(0x7FFFFFFF)) % (order.size - at)
        order[at], order[chosen] = order[chosen], order[at]


def class_seeds(random_state: np.random.RandomState, classes: int) -> tuple[int, ...]:
    """Return the seeds with which scikit-learn shuffles for each class, or one seed for two classes.

    >>> class_seeds(np.random.RandomState(0), 2), class_seeds(np.random.RandomState(0), 3)
    ((...,), (..., ..., ...))
    """
    if classes <= 2:
        return (_second_draw(random_state),)
    seeds = random_state.randint(LARGEST_SEED, size=classes)
    return tuple(_second_draw(np.random.RandomState(seed)) for seed in seeds)


def _second_draw(random_state: np.random.RandomState) -> int:
    random_state.randint(1, LARGEST_SEED)  # scikit-learn's data set draws this number, which is unused here
    return int(random_state.randint(LARGEST_SEED))


LONGEST = 2**22  # non-zeros per chunk, about ten milliseconds between two checks for Ctrl-C
FLOATS = [np.float64, np.float32]
NOTHING_TO_VALIDATE = "The sample weights for validation set are all zero, consider using a different random state."


def float_types(X: object) -> list[Any]:
    """Return the types that arrays may have. A polars frame of float32 must be named, else scikit-learn converts it.

    >>> float_types(np.ones((2, 2), np.float32)) == FLOATS
    True
    """
    single = hasattr(X, "collect_schema") and all(str(kind) == "Float32" for kind in X.collect_schema().dtypes())
    return [np.float32] if single else FLOATS


@contextmanager
def told_of_text(X: Any) -> Iterator[None]:
    """Raise an error that names the columns, where scikit-learn cannot make numbers of a data frame's texts.

    Raises
    ------
    DataError
        If that fails, and the frame has columns that are not numbers.
    """
    try:
        yield
    except (ValueError, TypeError) as error:
        texts = _text_columns(X)
        if not texts or isinstance(error, HogwildError):
            raise
        shown = ", ".join(map(repr, texts[:5])) + (", ..." if len(texts) > 5 else "")
        raise DataError(
            f"the data frame has columns that are not numbers: {shown} ({error})",
            remedy="Encode them by a step before this one, as in make_pipeline(make_column_transformer(("
            f"OneHotEncoder(), [{texts[0]!r}]), remainder='passthrough'), ...); or give fit the open data set "
            "hogwild.data.open(frame, y), which encodes them.",
        ) from error


def _text_columns(X: Any) -> list[str]:
    """Return the names of the columns of a data frame that are not numbers; none of anything else."""
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return []
    kinds = X.dtypes.tolist() if hasattr(X.dtypes, "tolist") else list(X.dtypes)
    numbers = ("int", "uint", "float", "bool")
    return [str(name) for name, kind in zip(X.columns, kinds, strict=True) if not str(kind).lower().startswith(numbers)]


def is_source(X: object) -> TypeGuard[Source]:
    """Return whether ``X`` is a file, several files or an open data set rather than arrays.

    >>> is_source("clicks.svm"), is_source([[0.0, 1.0]])
    (True, False)
    """
    if isinstance(X, Dataset):
        return True
    several = isinstance(X, (list, tuple)) and len(X) > 0 and all(isinstance(x, (str, os.PathLike)) for x in X)
    return isinstance(X, (str, os.PathLike)) or several


def open_source(
    X: Source, y: ArrayLike | None, sample_weight: ArrayLike | None, memory: int | str | None, fields: bool = False
) -> Dataset:
    """Open a file or a data set, which has its own labels and weights; ``y`` may be the name of a table's label.

    With ``fields``, the columns of a table are fields.
    """
    label = label_name(X, y)
    refuse_labels(None if label is not None else y, sample_weight)
    return open_data(X, label=label, memory=memory, reading=ReadOptions(fields=() if fields else None))


def classes_of(data: Dataset, numbers: Array) -> Array:
    """Return the texts of classes where the labels of a table are texts, which the data set numbers; else the numbers.

    >>> import pyarrow
    >>> data = open_data(pyarrow.table({"label": ["no", "yes"], "x": [1, 2]}), label="label")
    >>> classes_of(data, data.labels()).tolist()
    ['no', 'yes']
    """
    texts = None if data.encoding is None else data.encoding.classes
    return numbers if texts is None else np.asarray(texts)[np.asarray(numbers, np.int64)]


def refuse_other_labels(classes: Array, labels: Array, name: str) -> None:
    """Raise ``DataError`` if the labels of a data set are numbers where the classes of a model are texts."""
    if labels.dtype.kind != "U" and classes.dtype.kind not in "biuf":
        raise DataError(
            f"its labels are numbers, and the classes of this model are strings such as {str(classes[0])!r}",
            path=name,
            remedy="Give arrays, X and y, with such labels; or fit to a file with labels as in this one.",
        )
    if labels.dtype.kind == "U" and classes.dtype.kind in "biuf":
        raise DataError(
            f"its labels are texts such as {str(labels[0])!r}, and the classes of this model are numbers", path=name,
            remedy="Give a file with the labels of the training data.",
        )  # fmt: skip


def label_name(X: Source, y: ArrayLike | None) -> str | None:
    """Return the name of the column with the labels of a file, if ``y`` is one; else None.

    Raises
    ------
    ParameterError
        If the data set is open already, and has its labels.
    """
    if not isinstance(y, str):
        return None
    if isinstance(X, Dataset):
        raise ParameterError(
            f"An open data set has its labels. Name the column when you open it: hogwild.data.open(path, label={y!r})."
        )
    return y


def check_memory(memory: int | str | None) -> None:
    """Raise ``ParameterError`` unless a limit of memory is None or a size, whether or not this fit needs it."""
    if memory is not None and parse_size(memory) == 0:
        raise ParameterError(f"The 'memory' parameter must be a size such as '1GiB'. Got {memory!r} instead.")


def refuse_labels(y: ArrayLike | None, sample_weight: ArrayLike | None) -> None:
    """Raise an error for labels or weights that are given besides those of a file."""
    if y is not None or sample_weight is not None:
        raise ParameterError(
            "A file or data set has labels and weights of its own. Leave out 'y' and 'sample_weight', name the column "
            "of a table with the labels (y='click'), or give arrays (documents have to be vectorised first)."
        )


def labels_and_weights(data: Dataset) -> tuple[Array, Array | None]:
    """Return the label and the weight of each row, in the order of predictions. Weights are None if all are one.

    >>> labels_and_weights(open_data(np.eye(3), [3.0, 1.0, 2.0], [1.0, 1.0, 4.0]))
    (array([3., 1., 2.]), array([1., 1., 4.], dtype=float32))
    """
    epoch, labels, weights, weighted = data.in_order(), [np.empty(0)], [np.empty(0, np.float32)], False
    for number in range(len(epoch)):
        chunk = epoch[number]
        weighted = weighted or chunk.rows.weights.size > 0
        labels.append(chunk.rows.labels[chunk.order])
        ones = np.ones(len(chunk.order), np.float32)
        weights.append(chunk.rows.weights[chunk.order] if chunk.rows.weights.size else ones)
        epoch.done(number)
    return np.concatenate(labels), np.concatenate(weights) if weighted else None


def is_large(X: object) -> bool:
    """Return whether a matrix is sparse and so large that several threads pay for checks of its values.

    >>> is_large(csr_matrix([[0.0, 1.0]]))
    False
    """
    return isinstance(X, (csr_matrix, csr_array)) and X.nnz >= 2 * WORTH_A_THREAD


def is_finite(X: object, threads: int) -> bool:
    """Return whether a sparse matrix is known to have finite values alone, found on several threads.

    >>> is_finite(csr_matrix([[0.0, 1.0]]), 1), is_finite(csr_matrix([[0.0, np.inf]]), 1), is_finite([[0.0]], 1)
    (True, False, False)
    """
    if not isinstance(X, (csr_matrix, csr_array)) or X.dtype not in FLOATS:
        return False
    return not X.data.size or bool(np.isfinite(min_max(X.data, threads)).all())


def in_memory(X: Any, labels: Array, weights: Array | None) -> InMemoryDataset:
    """Return arrays as a data set, without a copy. Their structure and values have been checked.

    Raises
    ------
    DataError
        If a weight is negative.
    """
    count, features = X.shape
    layout: Layout = "dense" if isinstance(X, np.ndarray) else "sparse"
    if layout == "dense":
        indptr, indices, values = np.arange(count + 1, dtype=np.int64) * features, NO_INDICES, X.reshape(-1)
    else:
        indptr, indices, values = X.indptr.astype(np.int64), X.indices, X.data
        indices = indices.view(np.dtype(f"u{indices.itemsize}"))
    if weights is not None and weights.min() < 0:
        open_data(X, labels, weights)  # raises an error that names the row
    rows = CSRRows(indptr, indices, values, labels, NO_WEIGHTS if weights is None else weights, features, layout)
    return InMemoryDataset(rows, shuffled=False)


def matrix_of(rows: CSRRows) -> Any:
    """Return rows as the matrix that they came from."""
    shape = len(rows), rows.features
    if rows.layout == "dense":
        return rows.values.reshape(shape)
    indices = rows.indices.view(np.dtype(f"i{rows.indices.itemsize}"))
    return csr_matrix((rows.values, indices, rows.indptr), shape)


def in_sklearn_order(data: InMemoryDataset, weights: Array | None = None) -> InMemoryDataset:
    """Return the same rows in the order of scikit-learn's SGD, with weights in their given precision.

    A single worker shares no chunks, so chunks are large: they bound only the time between two checks for Ctrl-C.
    """
    per_row = max(1.0, data.nonzeros / max(1, data.n_rows))
    chunk = int(max(LONGEST, 4 * data.n_features) / per_row) + 1
    rows = data.rows if weights is None else replace(data.rows, weights=weights)
    return InMemoryDataset(rows, shuffled=False, ids=data.ids, order=Reshuffled(len(rows)), chunk=chunk)


def split_off(data: InMemoryDataset, held_out: Array) -> tuple[Dataset, Dataset]:
    """Return the rows that are not in ``held_out`` and the rows that are, without copying data.

    >>> data = open_data(np.eye(4), np.arange(4))
    >>> [part.labels().tolist() for part in split_off(data, np.array([2]))]
    [[0.0, 1.0, 3.0], [2.0]]
    """
    rows, numbers = data.rows, row_numbers(0, data.n_rows)
    chosen = np.zeros(data.n_rows, bool)
    chosen[held_out] = True
    rest = InMemoryDataset(rows, shuffled=False, ids=numbers[~chosen], order=data.order, chunk=data.chunk)
    return rest, InMemoryDataset(rows, shuffled=False, ids=numbers[chosen])


def rows_to_validate(
    y: Array, weights: Array | None, fraction: float, random_state: RandomState, *, stratified: bool
) -> Array:
    """Return the rows that early stopping holds out, the same rows as scikit-learn chooses."""
    from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

    splitter = StratifiedShuffleSplit if stratified else ShuffleSplit
    rest, held_out = next(splitter(test_size=fraction, random_state=random_state).split(np.zeros((len(y), 1)), y))
    if weights is not None and not np.any(weights[held_out] > 0):
        raise ValueError(NOTHING_TO_VALIDATE)
    if len(rest) == 0 or len(held_out) == 0:
        raise ValueError(
            f"Splitting {len(y)} samples into a train set and a validation set with validation_fraction={fraction!r} "
            f"led to an empty set ({len(rest)} and {len(held_out)} samples). Please either change validation_fraction, "
            "increase number of samples, or disable early_stopping."
        )
    return np.asarray(held_out)
