"""``hogwild predict``: predictions of a model for the rows of a file."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from hogwild.cli import options
from hogwild.cli.console import Debug, Json, Output, check_out
from hogwild.cli.download_progress import downloads_shown
from hogwild.cli.options.text_limits import LongestLine, MostUnpacked

if TYPE_CHECKING:
    from hogwild.data.csr import Array


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model written by train.", show_default=False)],
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A file, an address (s3://, gs://, hf://, https://), or - for standard input; it needs no labels.",
            show_default=False,
        ),
    ],
    proba: Annotated[bool, typer.Option("--proba", help="Probabilities of the classes, in their order.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write here instead of to stdout; .npy for an array, else text.")
    ] = None,
    format: options.Format = "auto",
    base: options.Base = "auto",
    longest_line: LongestLine = None,
    most_unpacked: MostUnpacked = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Predict the class, or the number, of every row: one line per row, in the order of the file.

    The file is read like the training file. Features unknown to the model are ignored.

    Example: hogwild predict rcv1.model new.svm.gz --proba --out new.txt
    """
    from hogwild.data.packing.sharded_rows import is_packed
    from hogwild.data.sources import local_folder
    from hogwild.models import load
    from hogwild.models.read_options import encoding_of

    screen = Output(as_json)
    check_out(out, inputs=(model, data))
    loaded = load(model)
    with downloads_shown(screen):
        predictions = loaded.answer(data, proba=proba, **options.given(format, base))
    encoding = encoding_of(loaded.reading)
    if encoding is not None and encoding.classes is not None and predictions.more.get("classes") and not proba:
        # Labels that were text in the training file are text again.
        named = np.asarray(encoding.classes)[predictions.values.astype(np.int64)]
        predictions = replace(predictions, values=named, more={**predictions.more, "classes": encoding.classes})
    if out is not None:
        _write(out, predictions.values)
    elif not as_json:
        typer.echo(_text(predictions.values), nl=False)
    if (folder := local_folder(data)) is not None and is_packed(folder):
        screen.note(f"{data}: the rows were shuffled when they were packed; predictions follow that order.")
    if predictions.scores:
        scores = ", ".join(f"{name} {value:.4f}" for name, value in predictions.scores.items())
        screen.note(f"{scores} on {len(predictions.values):,} rows")
    screen.result(
        {
            "rows": len(predictions.values),
            **predictions.more,
            **predictions.scores,
            **({"out": out} if out is not None else {predictions.name: predictions.values}),
        }
    )


_AT_ONCE = 2**16  # Number of values that one call formats.
_FEW = 2**8  # Number of different values, such as classes, of which each is formatted once.


def _text(values: Array) -> str:
    """Return one line per prediction; its values are separated by tabs."""
    columns = 1 if values.ndim == 1 else values.shape[1]
    if values.dtype.kind == "U":
        return "".join(f"{name}\n" for name in values.tolist())
    line, rows = "\t".join(["%.9g"] * columns) + "\n", max(1, _AT_ONCE // columns)
    pieces = []
    for first in range(0, len(values), rows):
        part = (values[first : first + rows].reshape(-1) + 0.0).tolist()  # 0.0: no zero is negative.
        different = set(part) if columns == 1 else ()
        if 0 < len(different) <= _FEW:
            pieces.append("".join(map({value: line % value for value in different}.__getitem__, part)))
        else:
            # One call of Python's formatting for many values takes a fourth of the time of a call for each.
            pieces.append(line * (len(part) // columns) % tuple(part))
    return "".join(pieces)


def _write(path: Path, values: Array) -> None:
    from hogwild.files import write_file

    if path.suffix == ".npy":
        content = io.BytesIO()
        np.save(content, values)
        write_file(path, content.getvalue())
    else:
        write_file(path, _text(values).encode())
