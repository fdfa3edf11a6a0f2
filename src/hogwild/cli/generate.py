"""``hogwild generate``: synthetic data with a known optimum, written to a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hogwild.cli.console import Debug, Json, Output, check_distinct

if TYPE_CHECKING:
    from typer.models import OptionInfo


def count(text: str) -> int:
    """Read a whole number in a usual notation.

    >>> count("1_000"), count("2e6"), count("1.5M"), count("10k")
    (1000, 2000000, 1500000, 10000)
    """
    digits, factor = text.strip().replace(",", ""), 1
    if digits and digits[-1].lower() in "kmg":
        digits, factor = digits[:-1], {"k": 10**3, "m": 10**6, "g": 10**9}[digits[-1].lower()]
    try:
        number = float(digits) * factor
        if number != int(number) or number < 1:
            raise ValueError
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r} is not a whole number of at least 1, such as 5000, 2e6 or 10k.") from None
    return int(number)


RECORDS, CRITEO = "sparse-records", "criteo"


def _count(help: str) -> OptionInfo:
    option: OptionInfo = typer.Option(parser=count, metavar="N", help=help)
    return option


def generate(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="classification, regression, multiclass, rcv1 (text), clicks, dense, interactions, ratings, "
            "sparse-records or criteo.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="The file to write: .svm, .vw (also .gz, .zst) or .npz; of interactions .ffm too, of ratings .csv, "
            ".tsv, .data or .dat; of sparse-records .tfrecord (also .gz, .zst).",
            show_default=False,
        ),
    ],
    rows: Annotated[int | None, _count("How many rows; 10k and 2e6 are fine.")] = None,
    features: Annotated[int | None, _count("How many columns.")] = None,
    nonzeros: Annotated[int | None, _count("Non-zeros a row, at most.")] = None,
    exponent: Annotated[float | None, typer.Option(min=0, help="How fast features get rarer with their rank.")] = None,
    noise: Annotated[float | None, typer.Option(min=0, help="How far labels stray from the planted model.")] = None,
    classes: Annotated[int | None, typer.Option(min=2, help="multiclass: how many classes.")] = None,
    fields: Annotated[int | None, typer.Option(min=2, help="interactions: features a row, one of each field.")] = None,
    dense_size: Annotated[int | None, _count("sparse-records: how wide rows are with their zeros.")] = None,
    min_nnz: Annotated[int | None, _count("sparse-records: non-zeros a row, at least.")] = None,
    max_nnz: Annotated[int | None, _count("sparse-records: non-zeros a row, at most.")] = None,
    distribution: Annotated[str | None, typer.Option(help="sparse-records: uniform or zipf.")] = None,
    binary: Annotated[
        bool, typer.Option("--binary", help="sparse-records: every value is 1, and none is written.")
    ] = False,
    users: Annotated[int | None, _count("ratings: how many users.")] = None,
    items: Annotated[int | None, _count("ratings: how many items.")] = None,
    rank: Annotated[int | None, typer.Option(min=1, help="interactions, ratings: how many planted factors.")] = None,
    weights: Annotated[Path | None, typer.Option(help="Write the planted model here, an .npz file.")] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="The same seed gives the same file; another one plants another model, too.")
    ] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write data with a planted model, in any size: its optimum is known.

    The kind decides the value of an option that is not given: rcv1 is shaped like the Reuters collection, clicks has
    millions of binary features, dense has a value in every cell.

    Example: hogwild generate rcv1 train.svm --rows 100k --seed 1
    """
    output = Output(as_json, out)
    check_distinct({"OUT": out, "--weights": weights})
    given: dict[str, Any] = {"rows": rows, "features": features, "nonzeros": nonzeros,
             "exponent": exponent, "noise": noise, "classes": classes, "fields": fields}  # fmt: skip
    of_ratings = {"users": users, "items": items, "rank": rank}
    of_records = {"dense_size": dense_size, "min_nnz": min_nnz, "max_nnz": max_nnz, "distribution": distribution,
                  "binary": binary or None}  # fmt: skip
    started = time.perf_counter()
    if kind == "ratings":
        _ratings(output, out, given | of_ratings | of_records, weights, seed, overwrite)
        return
    given |= of_ratings | of_records
    from hogwild.data.generate import kind as of_kind
    from hogwild.data.generate import write
    from hogwild.files import format_size

    chosen = {name: value for name, value in given.items() if value is not None}
    if kind == CRITEO:
        _write_criteo(output, out, chosen, seed, weights, overwrite)
        return
    if kind == RECORDS:
        _write_records(output, out, chosen, seed, weights, overwrite)
        return
    with output.progress() as bar:
        task = bar.add_task(f"Writing {out.name}", total=of_kind(kind, seed=seed, **chosen).n_rows)
        made = write(
            kind, out, weights=weights, overwrite=overwrite, seed=seed,
            progress=lambda done: bar.update(task, completed=done), **chosen,
        )  # fmt: skip
    seconds, size = time.perf_counter() - started, out.stat().st_size
    output.show(f"{made.n_rows:,} rows x {made.features:,} features in {out} ({format_size(size)}, {seconds:.1f} s)")
    output.result(
        {
            "kind": kind,
            "out": out,
            "rows": made.n_rows,
            "features": made.features,
            "bytes": size,
            "seed": seed,
            "weights": weights,
            "seconds": round(seconds, 3),
        }
    )


def _write_criteo(
    output: Output, out: Path, chosen: dict[str, Any], seed: int, weights: Path | None, overwrite: bool
) -> None:
    """Write lines of Criteo's format while they are drawn."""
    from hogwild.data.compression import without_compression
    from hogwild.data.generate.criteo import Criteo
    from hogwild.errors import ParameterError
    from hogwild.files import format_size

    ending = without_compression(out).suffix.lower()
    if ending in (".svm", ".vw", ".npz", ".ffm"):
        raise ParameterError(
            f"The lines of the kind '{CRITEO}' have tabs between columns: name the file .tsv, not {ending}."
        )
    for name in [*chosen, *(["weights"] if weights is not None else [])]:
        if name not in ("rows", "noise"):
            raise ParameterError(f"There is no '{name}' for the kind '{CRITEO}'. It takes noise, rows and seed.")
    started, made = time.perf_counter(), Criteo(**chosen, seed=seed)
    with output.progress() as bar:
        task = bar.add_task(f"Writing {out.name}", total=made.rows)
        made.write(out, lambda done: bar.update(task, completed=done), overwrite=overwrite)
    seconds, size = time.perf_counter() - started, out.stat().st_size
    output.show(f"{made.rows:,} rows of 39 columns in {out} ({format_size(size)}, {seconds:.1f} s)")
    output.result(
        {
            "kind": CRITEO, "out": out, "rows": made.rows, "features": 39, "bytes": size, "seed": seed,
            "seconds": round(seconds, 3),
        }
    )  # fmt: skip


def _write_records(
    output: Output, out: Path, chosen: dict[str, Any], seed: int, weights: Path | None, overwrite: bool
) -> None:
    """Write sparse rows as TFRecords while they are drawn, because all rows may not fit into memory."""
    from dataclasses import fields

    from hogwild.data.compression import ENDINGS, without_compression
    from hogwild.data.generate.sparse_records import SparseRecords
    from hogwild.errors import ParameterError
    from hogwild.files import check_free, format_size

    known = {field.name for field in fields(SparseRecords)}
    for name in [*chosen, *(["weights"] if weights is not None else [])]:
        if name not in known:
            raise ParameterError(f"There is no '{name}' for the kind '{RECORDS}'. It takes {', '.join(sorted(known))}.")
    endings = (".tfrecord", ".tfrecords")
    if without_compression(out).suffix.lower() not in endings:
        raise ParameterError(
            f"The file to write must end in {' or '.join(endings)}, or so with {', '.join(ENDINGS)} behind it. "
            f"Got '{out.name}' instead."
        )
    check_free(out, overwrite)
    started, made = time.perf_counter(), SparseRecords(**chosen, seed=seed)
    with output.progress() as bar:
        task = bar.add_task(f"Writing {out.name}", total=made.rows)
        made.write(out, lambda done: bar.update(task, completed=done))
    seconds, size = time.perf_counter() - started, out.stat().st_size
    output.show(f"{made.rows:,} rows x {made.dense_size:,} features in {out} ({format_size(size)}, {seconds:.1f} s)")
    output.result(
        {
            "kind": RECORDS, "out": out, "rows": made.rows, "features": made.dense_size, "classes": made.classes,
            "distribution": made.distribution, "bytes": size, "seed": seed, "seconds": round(seconds, 3),
        }
    )  # fmt: skip


def _ratings(
    output: Output, out: Path, given: dict[str, Any], weights: Path | None, seed: int, overwrite: bool
) -> None:
    """Write ratings, which have file formats of their own."""
    from hogwild.data.generate.ratings import write_ratings
    from hogwild.errors import ParameterError
    from hogwild.files import format_size

    started = time.perf_counter()
    chosen = {"n_rows" if name == "rows" else name: value for name, value in given.items() if value is not None}
    odd = chosen.keys() - {"n_rows", "users", "items", "rank", "noise"}
    if odd or weights is not None:
        raise ParameterError(
            f"There is no '{min(odd, default='weights')}' for the kind 'ratings'. It takes rows, users, items, rank, "
            "noise and seed."
        )
    made = write_ratings(out, overwrite=overwrite, seed=seed, **chosen)
    seconds, size = time.perf_counter() - started, out.stat().st_size
    output.show(
        f"{made.n_rows:,} ratings by {made.users:,} users of {made.items:,} items in {out} ({format_size(size)}, "
        f"{seconds:.1f} s); the planted ratings have an RMSE of {made.floor:.4f}"
    )
    output.result(
        {
            "kind": "ratings",
            "out": out,
            "rows": made.n_rows,
            "users": made.users,
            "items": made.items,
            "floor": made.floor,
            "bytes": size,
            "seed": seed,
            "seconds": round(seconds, 3),
        }
    )
