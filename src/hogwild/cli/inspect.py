"""``hogwild inspect``: size, sparsity and expected collisions of a data set, and recommendations."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hogwild.cli import options
from hogwild.cli.console import Debug, Json, Output
from hogwild.cli.download_progress import downloads_shown
from hogwild.cli.options import spread
from hogwild.cli.options.table import TableOptions
from hogwild.cli.options.text_limits import LongestLine, MostUnpacked

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hogwild.data.csr import Array
    from hogwild.data.dataset import Dataset
    from hogwild.data.statistics import LabelStatistics, Statistics


_CLASSES_SHOWN = 8


@spread
def inspect(
    data: options.Data,
    *,
    format: options.Format = "auto",
    features: options.Features = None,
    bits: options.Bits = 18,
    base: options.Base = "auto",
    longest_line: LongestLine = None,
    most_unpacked: MostUnpacked = None,
    table_options: TableOptions,
    seed: Annotated[int, typer.Option(min=0, help="Chooses the rows that stand for all where rho is estimated.")] = 0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show the size and sparsity of the data, the expected collisions of workers, and what to use.

    Omega is the most non-zeros in one row. Delta is the largest share of rows that one feature is in. rho is the
    largest share of rows that share a feature with one row, exact or within bounds.

    Expected collisions are those of W workers, each with a random row. The number of other workers that collide is
    (W-1) * (mean share of rows that share a feature with a row). The chance of any collision is the mean over rows of
    1 - (1 - share)^(W-1). The number of common coordinates is (W-1) * sum of p^2, where p is the share of rows with a
    feature.

    Example: hogwild inspect clicks.svm.gz --json
    """
    out = Output(as_json)
    how = options.reading(format, features, bits, base, table_options)
    started = time.perf_counter()
    with out.progress() as bar:
        task = bar.add_task(f"Reading {Path(data).name}", total=None)
        from hogwild import data as sources
        from hogwild.data.in_memory import InMemoryDataset
        from hogwild.data.present_columns import without_absent
        from hogwild.data.statistics import describe

        with downloads_shown(out, bar):
            dataset = sources.open(data, reading=how)
        if dataset.encoding is not None:
            from hogwild.data.tables.guess import describe as roles_of

            out.note(roles_of(dataset.encoding))
        if isinstance(dataset, InMemoryDataset):
            dataset = without_absent(dataset)  # Counts of features that no row has could take all memory.
        bar.update(task, description="Comparing rows")
        found = describe(dataset, seed=seed, progress=lambda done, total: bar.update(task, completed=done, total=total))
    from hogwild.data.statistics import ranked
    from hogwild.machine import usable_cores

    advice = advise(found, cores=usable_cores(), file_bytes=_size(Path(data)), packed=Path(data).is_dir())
    ranks, counts = ranked(dataset.frequencies())
    out.show(*_picture(out, dataset, found, ranks, counts, advice))
    record = _record(dataset, found, advice)
    out.result(
        {**record, "frequencies": {"rank": ranks, "rows": counts}, "seconds": round(time.perf_counter() - started, 3)}
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _record(dataset: Dataset, found: Statistics, advice: list[str]) -> dict[str, Any]:
    from hogwild.data.statistics import WORKERS

    return {
        "source": dataset.name,
        "rows": found.rows,
        "features": found.features,
        "nonzeros": found.nonzeros,
        "density": found.density,
        "layout": found.layout,
        "mean_nonzeros": found.mean_nonzeros,
        "empty_rows": found.empty_rows,
        "used_features": found.used_features,
        "labels": found.labels,
        "omega": found.omega,
        "delta": found.delta,
        "most_frequent_feature": found.most_frequent + dataset.base,
        "rho": found.overlap.rho,
        "rho_low": found.overlap.low,
        "rho_high": found.overlap.high,
        "rho_exact": found.overlap.exact,
        "mean_share": found.overlap.mean,
        "mean_share_error": found.overlap.mean_error,
        "rows_compared": found.overlap.compared,
        "rows_scanned": found.overlap.scanned,
        "collisions": [found.collisions(workers) for workers in WORKERS],
        "advice": advice,
    }


def _picture(
    out: Output, dataset: Dataset, found: Statistics, ranks: Array, counts: Array, advice: list[str]
) -> list[RenderableType]:
    from rich.text import Text

    def heading(words: str) -> Text:
        return Text.assemble("\n", (words, "bold cyan"))

    parts: list[RenderableType] = [Text(dataset.name, "bold"), _numbers(dataset, found)]
    if len(ranks):
        from hogwild.terminal_plot import log_log

        width = min(out.console.width, 100)
        old = "utf" not in out.console.encoding.lower()
        parts.append(heading("How many rows a feature is in, by its rank"))
        parts.append(Text(log_log(ranks, counts, width=width, ascii_only=old), no_wrap=True))
    parts += [heading("Expected collisions of a worker's row with those of the others"), _collisions(found)]
    parts += [heading("What to use"), _bullets(advice)]
    return parts


def _numbers(dataset: Dataset, found: Statistics) -> RenderableType:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(justify="right", no_wrap=True, style="bold")
    table.add_column()
    overlap, feature = found.overlap, found.most_frequent + dataset.base
    table.add_row("rows", f"{found.rows:,}", _label_summary(found.labels))
    table.add_row("features", f"{found.features:,}", f"{found.used_features:,} of them in some row")
    table.add_row("non-zeros", f"{found.nonzeros:,}", f"{found.mean_nonzeros:,.1f} a row, {found.layout}")
    table.add_row("density", f"{found.density:.3%}", "of all cells are stored")
    table.add_row("Omega", f"{found.omega:,}", "most non-zeros in one row")
    table.add_row("Delta", f"{found.delta:.4g}", f"largest share of rows with one feature (number {feature:,})")
    table.add_row("rho", f"{overlap.rho:.4g}", f"largest share of rows that share one with a row; {_certainty(found)}")
    error = "" if overlap.exact and not overlap.mean_error else f" (± {overlap.mean_error:.2g})"
    table.add_row("mean share", f"{overlap.mean:.4g}", f"chance that two random rows share a feature{error}")
    return table


def _certainty(found: Statistics) -> str:
    overlap = found.overlap
    if overlap.exact:
        return "exact"
    return f"from {overlap.compared} rows, between {overlap.low:.4g} and {overlap.high:.4g}"


def _label_summary(labels: LabelStatistics) -> str:
    if not labels.counts:
        return f"labels from {labels.low:g} to {labels.high:g}, mean {labels.mean:.4g}"
    classes = [f"{value:g}: {count:,}" for value, count in labels.counts.items()]
    more = len(classes) - _CLASSES_SHOWN
    return "labels " + ", ".join(classes[:_CLASSES_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def _collisions(found: Statistics) -> RenderableType:
    from rich import box
    from rich.table import Table

    from hogwild.data.statistics import WORKERS

    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for name in ("workers", "others that collide", "chance of any", "coordinates in common"):
        table.add_column(name, justify="right")
    for workers in WORKERS:
        expected = found.collisions(workers)
        table.add_row(
            str(workers), f"{expected.others:.3g}", f"{expected.probability:.1%}", f"{expected.coordinates:.3g}"
        )
    return table


def _bullets(lines: list[str]) -> RenderableType:
    from rich.table import Table

    table = Table.grid(padding=(0, 1))
    for line in lines:
        table.add_row("•", line)
    return table


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
            f"Any two rows have {shared:.0%} of their features in common: lock-free workers would conflict on them. "
            "Use --strategy averaging (each worker trains a copy), or one or two workers."
        )
    elif found.crowding >= BUSY:
        advice = (
            f"Two rows have {found.crowding:.1f} features in common ({shared:.0%} of a row), the frequent ones, whose "
            "cache lines move between cores: use --strategy hogwild with few workers, and compare it with serial and "
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
        advice.append(f"{which} no features at all: only the intercept contributes to their predictions.")
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
