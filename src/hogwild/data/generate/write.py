"""Writer of generated data: text is written while rows are drawn, arrays are written at once."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hogwild.data.csr import Array, CSRRows
from hogwild.data.generate.catalogue import kind
from hogwild.data.generate.factorisation_machine import Interactions
from hogwild.data.generate.linear_model import Generated
from hogwild.data.generate.text_writer import svmlight_text, vw_text
from hogwild.errors import ParameterError
from hogwild.files import replacing

Made = Generated | Interactions

_TEXTS: dict[str, Callable[[CSRRows], bytes]] = {
    ".svm": svmlight_text,
    ".svmlight": svmlight_text,
    ".libsvm": svmlight_text,
    ".vw": vw_text,
}


def write(
    name: str,
    path: str | Path,
    *,
    weights: str | Path | None = None,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> Made:
    """Write a kind of data in the format that the ending of the file determines.

    The formats are ``.svm`` and ``.vw`` text, also with ``.gz``, and ``.npz``. Interactions, whose features have
    fields, can also be ``.ffm`` text. The function writes a temporary file beside ``path`` and renames it, so that the
    file is complete or absent. ``weights`` is the name of an ``.npz`` file for the planted model (``weights``,
    ``intercept``). ``progress`` is called with the number of rows written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = write("regression", Path(folder, "a.svm"), rows=3, features=5)
    ...     len(Path(folder, "a.svm").read_text().splitlines())
    3
    """
    path = Path(path)
    ending = path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix
    made = kind(name, **options)
    texts = {**_TEXTS, ".ffm": made.libffm_text} if isinstance(made, Interactions) else _TEXTS
    format = texts.get(ending.lower())
    if format is None and path.suffix.lower() != ".npz":
        endings = ", ".join([*texts, *(f"{ending}.gz" for ending in texts), ".npz"])
        raise ParameterError(f"The file to write must end in one of {endings}. Got '{path.name}' instead.")
    beside = None if weights is None else Path(weights)
    check_free([path] if beside is None else [path, beside], overwrite)
    report = progress or (lambda _: None)
    if format is None:
        _write_arrays(made, path)
        report(made.n_rows)
    else:
        _write_text(made, path, format, report)
    if beside is not None:
        with replacing(beside) as file:
            factors = {"factors": made.factors, "fields": made.fields} if isinstance(made, Interactions) else {}
            np.savez(file, allow_pickle=False, weights=made.weights, intercept=made.intercept, **factors)
    return made


def check_free(paths: list[Path], overwrite: bool) -> None:
    """Raise ``ParameterError`` if a path exists and may not be overwritten, or cannot be written."""
    for path in paths:
        if path.is_dir() or not path.parent.is_dir():
            raise ParameterError(f"'{path}' cannot be written: it is a folder, or its folder does not exist.")
        if path.exists() and not overwrite:
            raise ParameterError(
                f"'{path}' exists already. Choose another name, or overwrite it (overwrite=True, --overwrite)."
            )


def _write_text(made: Made, path: Path, format: Callable[[CSRRows], bytes], report: Callable[[int], None]) -> None:
    done = 0
    with _packed(path) as file:
        for rows in made.pieces():
            file.write(format(rows))
            done += len(rows)
            report(done)


@contextmanager
def _packed(path: Path) -> Iterator[BinaryIO | gzip.GzipFile]:
    with replacing(path) as file:
        if path.suffix.lower() != ".gz":
            yield file
            return
        # The gzip header has neither name nor time, so that the same data give the same file.
        with gzip.GzipFile("", "wb", compresslevel=3, fileobj=file, mtime=0) as packed:
            yield packed


def _write_arrays(made: Made, path: Path) -> None:
    """Write the matrix as ``scipy.sparse.save_npz`` does, with the labels as ``y``."""
    rows = made.rows
    with replacing(path) as file:
        np.savez(file, allow_pickle=False, y=rows.labels, **_matrix(rows))


def _matrix(rows: CSRRows) -> dict[str, Array]:
    if rows.layout == "dense":
        return {"X": rows.values.reshape(len(rows), rows.features)}
    numbers = np.int32 if rows.nonzeros < 2**31 else np.int64
    return {
        "format": np.array(b"csr"),
        "shape": np.array([len(rows), rows.features]),
        "data": rows.values if rows.values.size else np.ones(rows.nonzeros, np.float32),
        "indices": rows.indices.astype(numbers),
        "indptr": rows.indptr.astype(numbers),
    }
