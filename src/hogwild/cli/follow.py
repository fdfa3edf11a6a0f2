"""``hogwild train --follow``: a linear model that learns each row once, from a file that grows or from a pipe."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hogwild.cli.console import INTERRUPTED, Output
from hogwild.errors import DataError, ParameterError

if TYPE_CHECKING:
    from hogwild.data.reader import ReadOptions
    from hogwild.training.follow import Progress

CHECKPOINT_SECONDS = 60.0
STEP = 0.1
# Options of ``train`` that --follow knows.
KNOWN = frozenset({
    "data", "follow", "problem", "loss", "l1", "l2", "intercept", "rule", "step", "out", "checkpoint", "resume",
    "checkpoint_seconds", "seconds", "format", "features", "bits", "base", "as_json", "debug", "config", "save_config",
})  # fmt: skip


def check_options(context: typer.Context) -> None:
    """Raise an error for an option of ``train`` that has no meaning for rows that come once."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in KNOWN and source is not None and source.name in ("COMMANDLINE", "DEFAULT_MAP", "ENVIRONMENT"):
            option = name.replace("_", "-")
            raise ParameterError(
                f"--{option} does not go with --follow, which learns each row once, in order, on one core."
            )


def train_online(
    screen: Output,
    source: str,
    reading: ReadOptions,
    options: Mapping[str, Any],
    *,
    rule: str | None,
    step: str | None,
    seconds: float | None,
    out: Path | None,
    points: Path | None,
    resume: bool,
    every: float | None,
) -> None:
    """Follow a file or a pipe; write the model and a checkpoint at the end, and every minute."""
    from hogwild import losses, rules
    from hogwild.data.followed_lines import FollowedLines
    from hogwild.folder_lock import folder_lock
    from hogwild.signals import deferred_interrupts
    from hogwild.training import follow as following
    from hogwild.training.online import OnlineLinear

    if seconds is not None and not seconds >= 0:
        raise ParameterError(f"--seconds is a number of at least 0. Got {seconds} instead.")
    learner = OnlineLinear(
        losses.named(options.get("loss", "logistic")), rules.named(rule or "adagrad"), _step(step),
        l1=following.check_strength("l1", options.get("l1")), l2=following.check_strength("l2", options.get("l2")),
        intercept=options.get("intercept", True),
    )  # fmt: skip
    kept = {"format": reading.format, "bits": reading.bits}
    base = 1 if reading.base == 1 else 0
    name = source if source == "-" else str(Path(source).absolute())
    with ExitStack() as closing:
        if points is not None:
            closing.enter_context(folder_lock(points))
        start = following.load_checkpoint(points, name, learner) if points is not None and resume else None
        if start is not None:
            screen.note(f"resumed after {learner.progress.rows:,} rows, at byte {start.offset:,} of {source}")
        lines = closing.enter_context(FollowedLines(source, start, reading.limits, seconds))
        stop = closing.enter_context(deferred_interrupts())

        def save() -> None:
            if points is not None:
                following.save_checkpoint(points, name, lines.position, learner)
            if out is not None and learner.progress.rows:
                learner.model(kept, base).save(out)

        screen.note(f"{'rows':>14} {'mean loss':>12} {'since last':>12} {'rows/s':>12}")
        try:
            ended = following.follow(
                lines, learner, reading, stop, seconds=seconds, every=every or CHECKPOINT_SECONDS, save=save,
                tell=lambda progress: _tell(screen, progress),
            )  # fmt: skip
        except DataError:
            save()
            raise
        if not learner.progress.rows and ended.reason == "end of the stream":
            raise DataError("no row came before its end", path=lines.name, remedy="Check what writes to it.")
        save()
    progress = learner.progress
    learnt = f", mean loss {progress.mean:.6f} before rows were learnt" if progress.rows else ""
    screen.show(f"{progress.rows:,} rows in {ended.seconds:.1f} s{learnt}")
    screen.result({
        "source": source, "format": ended.reader, "rows": progress.rows, "features": learner.features,
        "progressive_loss": progress.mean, "stop_reason": ended.reason, "seconds": round(ended.seconds, 3),
        "offset": lines.position.offset, "out": out, **learner.describe(),
    })  # fmt: skip
    if ended.reason == "interrupted":
        raise typer.Exit(INTERRUPTED)


def _step(step: str | None) -> float:
    try:
        number = STEP if step is None else float(step)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise ParameterError(f"With --follow, --step is a positive number, {STEP:g} by default. Got {step!r} instead.")
    return number


def _tell(screen: Output, progress: Progress) -> None:
    screen.note(
        f"{progress.rows:>14,} {progress.loss:>12.6f} {progress.recent:>12.6f} {progress.rows_per_second:>12,.0f}"
    )
