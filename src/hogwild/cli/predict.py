"""``hogwild predict``: predictions of a model for the rows of a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from hogwild.cli import options
from hogwild.cli.console import Debug, Json, Output, check_out
from hogwild.cli.download_progress import downloads_shown
from hogwild.cli.options.text_limits import LongestLine, MostUnpacked
from hogwild.cli.prediction_writers import ArrayWriter, BytesWriter, HeldPredictions, TextWriter, Writer
from hogwild.cli.streams import stdout_was_closed
from hogwild.errors import ParameterError
from hogwild.files import replacing

if TYPE_CHECKING:
    from hogwild.models.predictions import Predictions


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

    The file is read like the training file, a block at a time: memory does not grow with it, unless --json prints
    the predictions. Features unknown to the model are ignored.

    Example: hogwild predict rcv1.model new.svm.gz --proba --out new.txt
    """
    from hogwild.data.packing.sharded_rows import is_packed
    from hogwild.data.sources import local_folder
    from hogwild.models import load

    screen = Output(as_json, out)
    check_out(out, inputs=(model, data))
    if out is None and stdout_was_closed():
        raise ParameterError("Standard output is closed. Name a file for the predictions: --out FILE.")
    loaded = load(model)
    with downloads_shown(screen):
        answers = _named(loaded.answers(data, proba=proba, **options.given(format, base)), loaded.reading, proba)
        # A wrong option, or data that cannot be read, is told before anything is written.
        answers = chain([next(answers)], answers)
        held = HeldPredictions()
        if out is not None:
            with replacing(out) as file:
                last, rows = _written(answers, ArrayWriter(file) if out.suffix == ".npy" else BytesWriter(file))
        else:
            last, rows = _written(answers, held if as_json else TextWriter())
    if (folder := local_folder(data)) is not None and is_packed(folder):
        screen.note(f"{data}: the rows were shuffled when they were packed; predictions follow that order.")
    if last.scores:
        scores = ", ".join(f"{name} {value:.4f}" for name, value in last.scores.items())
        screen.note(f"{scores} on {rows:,} rows")
    screen.result(
        {
            "rows": rows,
            **last.more,
            **last.scores,
            **({"out": out} if out is not None else {last.name: held.values()} if as_json else {}),
        }
    )


def _named(answers: Iterator[Predictions], reading: Mapping[str, Any], proba: bool) -> Iterator[Predictions]:
    """Yield predictions with texts for classes where the labels of the training file were text."""
    from hogwild.models.read_options import encoding_of

    encoding = encoding_of(reading)
    for block in answers:
        if encoding is None or encoding.classes is None or not block.more.get("classes") or proba:
            yield block
        else:
            named = np.asarray(encoding.classes)[block.values.astype(np.int64)]
            yield replace(block, values=named, more={**block.more, "classes": encoding.classes})


def _written(answers: Iterator[Predictions], writer: Writer) -> tuple[Predictions, int]:
    """Write all blocks, and return the last one and the number of rows."""
    rows = 0
    for block in answers:
        writer.write(block.values)
        rows += len(block.values)
    writer.finish()
    return block, rows
