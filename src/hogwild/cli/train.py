"""``hogwild train``: from a file to a model."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hogwild.cli import reading as options
from hogwild.cli.output import Debug, Json, Output, check_out
from hogwild.cli.places import Places, place
from hogwild.cli.spreading import spread
from hogwild.cli.talked import in_words, talked
from hogwild.cli.talking import Talking, shaped
from hogwild.errors import ParameterError
from hogwild.naming import kebab

if TYPE_CHECKING:
    from hogwild.data.dataset import Dataset
    from hogwild.data.reading import Reading
    from hogwild.run import Event, Run

_WHAT, _HOW, _WHEN, _KEEP = "What is minimised", "How", "When to stop", "What is kept"
WORTH_TELLING = ("buffers", "step chosen", "diverged", "resumed")  # of the events, in the record of a run


@spread
def train(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A file, or a packed folder.", show_default=False)],
    *,
    test: Annotated[Path | None, typer.Option(help="Held-out data, in the same format.", rich_help_panel=_WHAT)] = None,
    holdout: Annotated[
        float | None, typer.Option(help="Hold this fraction of DATA out instead.", rich_help_panel=_WHAT)
    ] = None,
    loss: Annotated[
        str,
        typer.Option(
            help="hinge, squared-hinge, logistic, softmax, modified-huber, perceptron, squared, huber[:width], "
            "epsilon-insensitive[:width], squared-epsilon-insensitive[:width], quantile[:share] or poisson.",
            rich_help_panel=_WHAT,
        ),
    ] = "logistic",
    l1: Annotated[float, typer.Option(help="Strength of the L1 penalty.", rich_help_panel=_WHAT)] = 0.0,
    l2: Annotated[
        float, typer.Option(help="Strength of the L2 penalty: scikit-learn's alpha, 1/(C n).", rich_help_panel=_WHAT)
    ] = 0.0,
    intercept: Annotated[bool, typer.Option(help="Learn an intercept.", rich_help_panel=_WHAT)] = True,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Let every class weigh the same in all.", rich_help_panel=_WHAT)
    ] = False,
    rule: Annotated[str, typer.Option(help="sgd, momentum, adagrad, ftrl or adam.", rich_help_panel=_HOW)] = "adagrad",
    step: Annotated[
        str, typer.Option(help="The step to start from, or auto: by short trials.", rich_help_panel=_HOW)
    ] = "auto",
    schedule: Annotated[
        str,
        typer.Option(
            help="constant, inverse-time, inverse-scaling, optimal, backoff, steps, cosine, adaptive or warmup.",
            rich_help_panel=_HOW,
        ),
    ] = "cosine",
    average: Annotated[
        float, typer.Option(help="Average the iterates over this last share of the run.", rich_help_panel=_HOW)
    ] = 0.0,
    strategy: Annotated[
        str,
        typer.Option(
            help="serial, hogwild, locked, round-robin or averaging; by messages: parameter-server, synchronous, "
            "all-to-all, gossip, local-sgd, diloco, elastic-averaging or averaging.",
            rich_help_panel=_HOW,
        ),
    ] = "hogwild",
    runtime: Annotated[
        str | None,
        typer.Option(
            help="threads (in one memory), local (by messages, between threads), ray (by messages, on a cluster) or "
            "simulator (by messages, in simulated time). Default: what suits the strategy.",
            show_default=False,
            rich_help_panel=_HOW,
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Default: one per core.", show_default=False, rich_help_panel=_HOW)
    ] = None,
    buffer: Annotated[
        str,
        typer.Option(
            help="hogwild: rows between two merges of a worker's own copies; 0 is textbook Hogwild!.",
            rich_help_panel=_HOW,
        ),
    ] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Chooses the order of the rows.", rich_help_panel=_HOW)] = 0,
    memory: Annotated[
        str | None, typer.Option(help="The most memory to use, such as 2GiB.", rich_help_panel=_HOW)
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1, help="Default: 10 to 1,000, by the size of the data.", show_default=False, rich_help_panel=_WHEN
        ),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Of training; simulated ones with the simulator.", rich_help_panel=_WHEN)
    ] = None,
    target: Annotated[
        float | None, typer.Option(help="A loss, held-out if there is held-out data.", rich_help_panel=_WHEN)
    ] = None,
    patience: Annotated[
        int | None, typer.Option(min=1, help="Epochs without a better held-out loss.", rich_help_panel=_WHEN)
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(help="Stop when the objective falls by less, five epochs in a row.", rich_help_panel=_WHEN),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the model here.", rich_help_panel=_KEEP)] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Write a checkpoint here after every epoch.", rich_help_panel=_KEEP)
    ] = None,
    checkpoint_seconds: Annotated[
        float | None, typer.Option(help="And after so many seconds within long epochs.", rich_help_panel=_KEEP)
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(help="Go on from the checkpoint here, or begin if there is none yet.", rich_help_panel=_KEEP),
    ] = None,
    log: Annotated[Path | None, typer.Option(help="Append events here, as JSON lines.", rich_help_panel=_KEEP)] = None,
    tensorboard: Annotated[
        Path | None, typer.Option(help="Write TensorBoard files here.", rich_help_panel=_KEEP)
    ] = None,
    talking: Talking,
    places: Places,
    format: options.Format = "auto",
    features: options.Features = None,
    bits: options.Bits = 18,
    label: options.Label = "label",
    weight: options.Weight = None,
    base: options.Base = "auto",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Train a linear model on all cores.

    Minimised is the mean loss + l1 |w| + l2/2 |w|^2. Ctrl-C ends the run early and keeps the model.

    Example: hogwild train rcv1.svm.gz --loss hinge --l2 1e-5 --holdout 0.1 --out rcv1.model
    """
    from hogwild import strategies
    from hogwild.run import Budget
    from hogwild.schedules import named as schedule_named
    from hogwild.schedules import step_of, with_step

    screen = Output(as_json)
    how = options.reading(format, features, bits, label, weight, base)
    chosen = with_step(schedule_named(schedule), _step(step))
    if step != "auto" and step_of(chosen) is None:
        raise ParameterError(f"The schedule {schedule!r} finds its own steps. Leave out --step, or choose another one.")
    strategy_ = shaped(strategies.named(strategy, _workers(strategy, workers, screen)), talking)
    if buffer != "auto":
        strategy_ = _buffered(strategy_, buffer)
    runtime_ = place(runtime, strategy_, places, talking)
    budget = Budget(epochs, seconds, target, patience, tolerance)
    folder = _folder(checkpoint, resume)
    if test is not None and holdout is not None:
        raise ParameterError("Held-out data comes from --test or from --holdout, not from both.")
    if patience and test is None and holdout is None:
        raise ParameterError("--patience counts epochs without a better held-out loss: give --test or --holdout.")
    if checkpoint_seconds is not None and folder is None:
        raise ParameterError("--checkpoint-seconds says how often: say also where, with --checkpoint DIR.")
    check_out(out)
    from hogwild.losses import named as loss_named
    from hogwild.rules import named as rule_named

    loss_, rule_ = loss_named(loss), rule_named(rule)
    started = time.perf_counter()
    training, held_out = _open(data, test, holdout, how, memory, seed, screen)
    load_seconds = time.perf_counter() - started
    from hogwild.problems.linear import Linear
    from hogwild.training.checkpoints import Checkpoints
    from hogwild.training.minimise import minimise

    problem = Linear(training, loss_, l1=l1, l2=l2, intercept=intercept, class_weight="balanced" if balanced else None)
    started = time.perf_counter()
    with screen.alone(), ExitStack() as closing:
        run = minimise(
            problem,
            rule_,
            chosen,
            strategy_,
            runtime_,
            budget=budget,
            test=held_out,
            average=average,
            seed=seed,
            callbacks=_callbacks(screen, log, tensorboard, closing),
            checkpoint=None if folder is None else Checkpoints(folder, checkpoint_seconds),
            resume=resume is not None,
        )
    real_seconds = time.perf_counter() - started - run.compile_seconds
    if training.base and base == "auto":
        screen.note("no index is 0, so the indices are taken to count from 1 (--base 0 if they do not)")
    if out is not None:
        kept = {"format": format, "base": training.base, "bits": bits, "label": label, "weight": weight}
        replace(run.model, reading=kept).save(out)
    if places.record is not None:
        run.trace.save(places.record)
    record = {
        **_record(run, training, held_out, load_seconds, out),
        "strategy": kebab(type(strategy_).__name__),
        "runtime": kebab(type(runtime_).__name__),
        **talked(run, getattr(runtime_, "virtual", False), real_seconds),
    }
    screen.show(*_picture(record))
    screen.result(record)
    if run.stopped == "interrupted":
        raise typer.Exit(130)


def _buffered(strategy: Any, buffer: str) -> Any:
    if not hasattr(strategy, "buffer"):
        raise ParameterError("--buffer goes with --strategy hogwild.")
    if not buffer.isdecimal():
        raise ParameterError(f"--buffer is a number of rows, or auto. Got {buffer!r} instead.")
    return replace(strategy, buffer=int(buffer))


def _workers(strategy: str, workers: int | None, screen: Output) -> int | None:
    """Scripts that try every strategy with several workers need not know which of them has only one."""
    if strategy == "serial" and workers not in (None, 1):
        screen.warn(f"the strategy 'serial' has one worker; --workers {workers} is ignored")
        return None
    return workers


def _step(step: str) -> Any:
    if step == "auto":
        return step
    try:
        return float(step)
    except ValueError:
        raise ParameterError(
            f"The 'step' parameter must be a positive number or 'auto'. Got {step!r} instead."
        ) from None


def _folder(checkpoint: Path | None, resume: Path | None) -> Path | None:
    if checkpoint is not None and resume is not None and checkpoint.absolute() != resume.absolute():
        raise ParameterError(
            "--checkpoint and --resume name different folders. A run goes on in the folder it resumes."
        )
    return resume or checkpoint


def _open(
    data: Path, test: Path | None, holdout: float | None, how: Reading, memory: str | None, seed: int, screen: Output
) -> tuple[Dataset, Dataset | None]:
    from hogwild import data as sources

    training = sources.open(data, reading=how, memory=memory)
    if holdout is not None:
        return training.split(holdout, seed)
    if test is None:
        return training, None
    same = replace(how, base=0 if training.base == 0 else 1, features=training.n_features, extra="ignore")
    held_out = sources.open(test, reading=same, memory=memory)
    return training, held_out


def _callbacks(screen: Output, log: Path | None, tensorboard: Path | None, closing: ExitStack) -> list[Any]:
    from hogwild.callbacks import JsonLines, Progress, TensorBoard

    callbacks: list[Any] = []
    kinds: Any = ((Progress, screen.messages), (JsonLines, log), (TensorBoard, tensorboard))
    for kind, where in kinds:
        if where is not None:
            callbacks.append(kind(where))
            closing.callback(callbacks[-1].close)
    return [*callbacks, _notes(screen)]


def _notes(screen: Output) -> Any:
    """Say in words what a user should know of."""

    def note(event: Event) -> None:
        if event["event"] == "step chosen":
            screen.note(f"step {event['step']:g}, from {len(event['trials'])} tried on a sample")
        elif event["event"] == "diverged":
            screen.warn(event["message"])
        elif event["event"] == "resumed":
            screen.note(event.get("message") or f"resumed after {event['epoch']} epochs")
        elif event["event"] == "died":
            then = "it is started again" if event["again"] else "the others go on without it"
            screen.warn(f"{event['participant']} has died, because {event['reason']}; {then}")
        elif event["event"] == "no room":
            screen.warn(f"{event['participant']} has to wait until there is room: {event['reason']}")

    return note


def _record(
    run: Run, training: Dataset, held_out: Dataset | None, load_seconds: float, out: Path | None
) -> dict[str, Any]:
    result = run.result
    score = "accuracy" if "accuracy" in result else "r2"
    return {
        "loss": result["loss"],
        "objective": result["objective"],
        "test_loss": result.get("test_loss"),
        score: result.get(f"test_{score}", result[score]),
        f"train_{score}": result[score],
        f"test_{score}": result.get(f"test_{score}"),
        "seconds": run.seconds,
        "load_seconds": load_seconds,
        "compile_seconds": run.compile_seconds,
        "rows": training.n_rows,
        "features": training.n_features,
        "nonzeros": training.nonzeros,
        "test_rows": None if held_out is None else held_out.n_rows,
        "epochs": run.history[-1]["epoch"],
        "best_epoch": result["epoch"],
        "updates": run.history[-1]["updates"],
        "workers": run.asked["workers"],
        "rule": run.asked["rule"],
        "schedule": run.asked["schedule"],
        "seed": run.asked["seed"],
        "stopped": run.stopped,
        "model": out,
        "history": run.history,
        "events": [event for event in run.events if event["event"] in WORTH_TELLING],
    }


def _where(record: dict[str, Any]) -> str:
    return "" if record["runtime"] == "threads" else f", {record['runtime']}"


def _simulated(record: dict[str, Any]) -> str:
    return "" if record["simulated_seconds"] is None else f" simulated (in {record['real_seconds']:.1f} s)"


def _picture(record: dict[str, Any]) -> list[Any]:
    from rich.table import Table
    from rich.text import Text

    score = "accuracy" if "accuracy" in record else "r2"
    table = Table(show_header=False, box=None, padding=(0, 2))
    rate = record["updates"] / record["seconds"] if record["seconds"] else 0.0
    lines = {
        "data": f"{record['rows']:,} rows x {record['features']:,} features, {record['nonzeros']:,} non-zeros",
        "workers": f"{record['workers']} ({record['strategy']}){_where(record)}",
        "time": f"{record['seconds']:.2f} s{_simulated(record)}, {rate:,.0f} rows/s, {record['epochs']} epochs",
        **in_words(record),
        "stopped by": record["stopped"],
        "objective": f"{record['objective']:.6f}",
        "loss": f"{record['loss']:.6f}",
        score: f"{record[f'train_{score}']:.4f}",
    }
    if record["test_loss"] is not None:
        lines |= {"held-out loss": f"{record['test_loss']:.6f}", f"held-out {score}": f"{record[f'test_{score}']:.4f}"}
    if record["model"]:
        lines["model"] = str(record["model"])
    for name, text in lines.items():
        table.add_row(Text(name, style="dim"), Text(text))
    return [table]
