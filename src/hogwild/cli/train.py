"""``hogwild train``: training of a model on the rows of a file."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hogwild.cli import options
from hogwild.cli.console import INTERRUPTED, Debug, Json, Output, check_distinct, check_out, counted, explain, is_packed
from hogwild.cli.download_progress import downloads_shown
from hogwild.cli.follow import check_options, train_online
from hogwild.cli.options import configuration, spread
from hogwild.cli.options.problem import PANEL as _WHAT
from hogwild.cli.options.problem import ProblemOptions, check_step, given, schedule_for, warmup_ends
from hogwild.cli.options.runtime import RuntimeOptions, make_runtime
from hogwild.cli.options.strategy import CommunicationOptions, with_options
from hogwild.cli.options.table import TableOptions
from hogwild.cli.options.text_limits import LongestLine, MostUnpacked
from hogwild.cli.problems import PROBLEMS, rules_help
from hogwild.cli.problems import named as problem_named
from hogwild.cli.problems.adapter import Source
from hogwild.cli.run_summary import message_summary, picture_of, record_of
from hogwild.errors import ParameterError
from hogwild.files import check_appendable, check_folder
from hogwild.registry import kebab

if TYPE_CHECKING:
    from hogwild.callbacks import JsonLines, Live, Progress, TensorBoard
    from hogwild.events import Callback, Event
    from hogwild.strategies import Hogwild, Strategy
    from hogwild.training.checkpoints import Checkpoints

_HOW, _WHEN, _KEEP = "How", "When to stop", "What is kept"


def _configured(context: typer.Context, config: Path | None) -> Path | None:
    """Make the options in a file the defaults of this command, before its other options are read."""
    if config is not None:
        context.default_map = configuration.read(config, train)
    return config


@spread
def train(
    context: typer.Context,
    data: options.Data,
    *,
    problem: Annotated[str, typer.Option(help=f"{', '.join(PROBLEMS)}.", rich_help_panel=_WHAT)] = "linear",
    test: Annotated[str | None, typer.Option(help="Held-out data, in the same format.", rich_help_panel=_WHAT)] = None,
    holdout: Annotated[
        float | None, typer.Option(help="Hold this fraction of DATA out instead.", rich_help_panel=_WHAT)
    ] = None,
    problem_options: ProblemOptions,
    rule: Annotated[
        str | None,
        typer.Option(
            help=f"{rules_help()} Default: what suits the problem, mostly adagrad.",
            show_default=False,
            rich_help_panel=_HOW,
        ),
    ] = None,
    step: Annotated[
        str | None,
        typer.Option(
            help="The step to start from, or auto: by short trials. Default: what suits the problem, mostly auto.",
            show_default=False,
            rich_help_panel=_HOW,
        ),
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            help="constant, inverse-time[:DECAY], inverse-scaling[:POWER], optimal, backoff[:BETA[:EPOCHS]], steps, "
            "cosine[:FLOOR], cooldown[:START[:FLOOR]], adaptive[:FACTOR[:LEAST]], warmup[:EPOCHS[:START]][:SCHEDULE] "
            "(warmup:5:0.1:cosine rises for 5 epochs from a tenth of the step) or "
            "linear-scaling[:REFERENCE[:EPOCHS]][:SCHEDULE] (the step times the samples of a step over "
            "REFERENCE). Default: what suits the rule, cooldown or cosine.",
            show_default=False,
            rich_help_panel=_HOW,
        ),
    ] = None,
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
            help="threads (in one memory), cuda (on a GPU), processes (in one memory, only for "
            "sparse-mlp), local (by messages, between threads), ray (by messages, on a cluster) or simulator (by "
            "messages, in simulated time). Default: what suits the problem and the strategy.",
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
    window: Annotated[
        int | None,
        typer.Option(
            min=1, help="Stop when the best of so many records is no better than before.", rich_help_panel=_WHEN
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the model here.", rich_help_panel=_KEEP)] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Write a checkpoint here after every epoch.", rich_help_panel=_KEEP)
    ] = None,
    checkpoint_seconds: Annotated[
        float | None, typer.Option(help="And at this interval within long epochs, in seconds.", rich_help_panel=_KEEP)
    ] = None,
    profile: Annotated[
        bool,
        typer.Option(
            "--profile",
            help="sparse-mlp: print how much of a step is input, lookup, dense layers and update.",
            rich_help_panel=_HOW,
        ),
    ] = False,
    count_conflicts: Annotated[
        bool,
        typer.Option(
            "--count-conflicts",
            help="Count collisions and lost writes of workers in one memory, which takes longer.",
            rich_help_panel=_HOW,
        ),
    ] = False,
    resume: Annotated[
        Path | None,
        typer.Option(help="Go on from the checkpoint here, or begin if there is none yet.", rich_help_panel=_KEEP),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Leave the run here: run.json, events.jsonl, the model and config.toml, which repeats the run.",
            rich_help_panel=_KEEP,
        ),
    ] = None,
    save_config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the options here, for --config to repeat the run.", rich_help_panel=_KEEP
        ),
    ] = None,
    log: Annotated[Path | None, typer.Option(help="Append events here, as JSON lines.", rich_help_panel=_KEEP)] = None,
    tensorboard: Annotated[
        Path | None, typer.Option(help="Write TensorBoard files here.", rich_help_panel=_KEEP)
    ] = None,
    communication: CommunicationOptions,
    runtime_options: RuntimeOptions,
    format: options.Format = "auto",
    features: options.Features = None,
    bits: options.Bits = 18,
    base: options.Base = "auto",
    longest_line: LongestLine = None,
    most_unpacked: MostUnpacked = None,
    table_options: TableOptions,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Take options, and DATA, from this TOML file, by their long names: workers = 4. The command line "
            "prevails.",
            callback=_configured,
            is_eager=True,
            show_default=False,
        ),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            help="Record the loss also between epochs: every so many updates, or seconds such as 0.5s.",
            rich_help_panel=_KEEP,
            show_default=False,
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Learn each row of a growing file or a pipe once, in order, as it comes, until Ctrl-C, --seconds or "
            "the end of the pipe; print the loss of rows before they are learnt. Linear models; a checkpoint a minute.",
            rich_help_panel=_HOW,
        ),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Draw the loss, the rate and the staleness as the run goes, on a terminal.")
    ] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Train a model on all cores: a linear one, or another kind of --problem.

    A linear model minimises the mean loss + l1 |w| + l2/2 |w|^2. Ctrl-C, SIGTERM, SIGHUP and SIGXCPU end the run early
    and keep the model.

    Example: hogwild train rcv1.svm.gz --loss hinge --l2 1e-5 --holdout 0.1 --out rcv1.model
    """
    from hogwild import strategies
    from hogwild.run import RECORD
    from hogwild.stopping import Budget

    screen = Output(as_json, out)
    how = options.reading(format, features, bits, base, table_options)
    kind, asked = problem_named(problem), given(problem, problem_options)
    kind.check(asked)
    read = (data, test, config, runtime_options.replay, asked.get("seeds"))
    if follow:
        check_options(context)
        if problem != "linear":
            raise ParameterError(f"--follow is for --problem linear. Got --problem {problem}.")
        check_out(out, inputs=read)
        check_out(save_config, "--save-config", inputs=read)
        if save_config is not None:
            configuration.save(save_config, configuration.repeating(context.params, train))
        points = _checkpoint_folder(checkpoint, resume)
        train_online(
            screen, data, how, asked, rule=rule, step=step, seconds=seconds, out=out, points=points,
            resume=resume is not None, every=checkpoint_seconds,
        )  # fmt: skip
        return
    check_step(schedule, step)
    if schedule is not None and epochs is not None and not warmup_ends(schedule, epochs):
        screen.warn(f"the warm-up of --schedule {schedule} does not end within --epochs {epochs}: make it shorter")
    strategy_ = with_options(strategies.named(strategy, _workers(strategy, workers, screen)), communication)
    if buffer != "auto":
        strategy_ = _buffered(strategy_, buffer)
    kind.check_workers(problem, runtime, strategy_)
    by_processes = kind.processes and runtime is None and strategy_.shares_memory
    runtime_ = make_runtime("processes" if by_processes else runtime, strategy_, runtime_options, communication)
    budget = Budget(epochs, seconds, target, patience, tolerance, window=window)
    points = _checkpoint_folder(checkpoint, resume)
    if test is not None and holdout is not None:
        raise ParameterError("Held-out data comes from --test or from --holdout, not from both.")
    if patience and test is None and holdout is None:
        raise ParameterError("--patience counts epochs without a better held-out loss: give --test or --holdout.")
    if checkpoint_seconds is not None and points is None:
        raise ParameterError("--checkpoint-seconds needs a folder for checkpoints: add --checkpoint DIR.")
    if folder is not None and resume is None and (folder / RECORD).exists():
        raise ParameterError(
            f"--folder {folder}: there is a run already. Give another folder, or go on with that run by --resume DIR, "
            "the folder of its checkpoints."
        )
    if profile and not kind.processes:
        raise ParameterError("--profile is for networks: use it with --problem sparse-mlp.")
    written = {"--out": out, "--save-config": save_config, "--log": log, "--record": runtime_options.record}
    check_distinct({"--checkpoint": points, **written})
    check_distinct({"--folder": folder, **_files_of(folder), **written})
    for option, place in (("--folder", folder), ("--checkpoint", points)):
        if place is not None and is_packed(place):
            raise ParameterError(f"{option} {place}: this folder has packed rows. Choose another one.")
    check_out(out, inputs=read)
    check_out(save_config, "--save-config", inputs=read)
    check_out(runtime_options.record, "--record", inputs=read)
    check_out(log, "--log", check_appendable, inputs=read)
    check_out(folder, "--folder", check_folder)
    check_out(tensorboard, "--tensorboard", check_folder)
    checkpoints = _held(points, checkpoint_seconds, context)
    rule_name = rule or kind.usual_rule
    rule_ = None if rule_name is None else kind.rule(rule_name)
    if save_config is not None:
        configuration.save(save_config, configuration.repeating(context.params, train))
    started = time.perf_counter()
    with downloads_shown(screen):
        opened = kind.opened(Source(data, test, holdout, how, memory, seed), asked)
    training, held_out = opened.training, opened.held_out
    load_seconds = time.perf_counter() - started
    for line in opened.roles:
        screen.note(line)
    from hogwild.training.minimise import minimise

    made = kind.problem(training, asked, seed)
    chosen = schedule_for(made, rule_, schedule, step)
    started = time.perf_counter()
    logs = _log_files(log, tensorboard, context)
    with screen.alone(), closing(_progress(screen, watch)) as progress:
        run = minimise(
            made,
            rule_,
            chosen,
            strategy_,
            runtime_,
            budget=budget,
            test=held_out,
            average=average,
            seed=seed,
            callbacks=[progress, *logs, _notes(screen), *_configuration_writer(context, folder)],
            checkpoint=checkpoints,
            resume=resume is not None,
            count_conflicts=count_conflicts,
            folder=folder,
            every=every,
        )
    real_seconds = time.perf_counter() - started - run.compile_seconds
    for note in opened.notes:
        screen.note(note)
    if out is not None and run.stop_reason == "interrupted" and run.result.get("updates") == 0:
        screen.warn(f"the signal came before anything was learnt: {out} is not written")
    elif out is not None:
        kind.model(run, opened).save(out)
    if runtime_options.record is not None and run.trace is not None:  # None: Ctrl-C in the search for a penalty
        run.trace.save(runtime_options.record)
    record = {
        **record_of(run, made, held_out, load_seconds, out),
        "strategy": kebab(type(strategy_).__name__),
        "runtime": kebab(type(runtime_).__name__),
        **message_summary(run, runtime_.simulated_time, real_seconds),
    }
    if profile:
        record["profile"] = _profile(made, screen)
    screen.show(*picture_of(record))
    lost = [explain(error) for each in logs if (error := _closed(each)) is not None]
    screen.result(record | ({"log_errors": lost} if lost else {}))
    for why in lost:
        screen.error(f"{why}. The log ends early; the training did not.")
    if lost or run.stop_reason == "interrupted":
        raise typer.Exit(INTERRUPTED if run.stop_reason == "interrupted" else 1)


def _files_of(folder: Path | None) -> dict[str, Path | None]:
    """Return the files that a run writes to its folder, by names for messages."""
    from hogwild.run import CONFIGURATION, EVENTS_FILE, RECORD

    names = () if folder is None else (RECORD, EVENTS_FILE, CONFIGURATION)
    return {f"--folder ({name})": Path(folder or "", name) for name in names}


def _profile(problem: Any, screen: Output) -> dict[str, float]:
    """Measure the shares of the time of a training step, print them, and return them."""
    from hogwild.training.process_driver import profiled

    found = profiled(problem)
    screen.note(f"some steps more, to see where the time goes: {found}")
    return {"milliseconds": 1000 * found.total / found.steps, **found.shares()}


def _buffered(strategy: Strategy, buffer: str) -> Hogwild:
    from hogwild.strategies import Hogwild

    if not isinstance(strategy, Hogwild):
        raise ParameterError("--buffer goes with --strategy hogwild.")
    if not buffer.isdecimal():
        raise ParameterError(f"--buffer is a number of rows, or auto. Got {buffer!r} instead.")
    return replace(strategy, buffer=int(buffer))


def _workers(strategy: str, workers: int | None, screen: Output) -> int | None:
    """Return the number of workers, or None with a warning for the strategy ``serial``.

    A script can then try every strategy with several workers, without a special case for ``serial``.
    """
    if strategy == "serial" and workers not in (None, 1):
        screen.warn(f"the strategy 'serial' has one worker; --workers {workers} is ignored")
        return None
    return workers


def _checkpoint_folder(checkpoint: Path | None, resume: Path | None) -> Path | None:
    if checkpoint is not None and resume is not None and checkpoint.absolute() != resume.absolute():
        raise ParameterError(
            "--checkpoint and --resume name different folders. A run goes on in the folder it resumes."
        )
    return resume or checkpoint


def _held(folder: Path | None, seconds: float | None, context: typer.Context) -> Checkpoints | None:
    """Return the checkpoints in a folder, which no other run writes to until this command ends."""
    if folder is None:
        return None
    from hogwild.training.checkpoints import Checkpoints

    found = Checkpoints(folder, seconds)
    context.with_resource(found.held())
    return found


def _configuration_writer(context: typer.Context, folder: Path | None) -> list[Callback]:
    """Make a callback that writes the configuration into the folder of the run, which exists when the run starts."""
    if folder is None:
        return []
    from hogwild.run import CONFIGURATION

    path, text = folder / CONFIGURATION, configuration.repeating(context.params, train)

    def write(event: Event) -> None:
        if event["event"] == "started":
            configuration.save(path, text)

    return [write]


def _progress(screen: Output, watch: bool) -> Live | Progress:
    from hogwild.callbacks import Live, Progress

    return (Live if watch else Progress)(screen.messages)


def _log_files(log: Path | None, tensorboard: Path | None, context: typer.Context) -> list[JsonLines | TensorBoard]:
    """Open the logs of a run, which are closed when the command ends, if not before."""
    from hogwild.callbacks import JsonLines, TensorBoard

    made: list[JsonLines | TensorBoard] = []
    for kind, where in ((JsonLines, log), (TensorBoard, tensorboard)):
        if where is not None:
            made.append(kind(where))
            context.call_on_close(partial(_closed, made[-1]))
    return made


def _closed(log: JsonLines | TensorBoard) -> OSError | None:
    """Close a log, and return its error, which was a warning when it occurred: the model is kept all the same."""
    try:
        log.close()
    except OSError as error:
        return error
    return None


def _notes(screen: Output) -> Callback:
    """Make a callback that prints the events that a user should know."""

    def note(event: Event) -> None:
        if event["event"] == "step chosen":
            screen.note(f"step {event['step']:g}, from {len(event['trials'])} tried on a sample")
        elif event["event"] == "penalty chosen":
            chosen = ", ".join(f"{name} {value!r}" for name, value in event["penalties"].items() if value)
            screen.note(f"{chosen}, from {len(event['path'])} tried on held-out data")
        elif event["event"] in ("diverged", "loss rose"):
            screen.warn(event["message"])
        elif event["event"] == "resumed":
            screen.note(event.get("message") or f"resumed after {counted(event['epoch'], 'epoch')}")
        elif event["event"] == "crashed":
            then = "it restarts" if event["restarts"] else "the other nodes continue without it"
            screen.warn(f"{event['node']} crashed, because {event['reason']}; {then}")
        elif event["event"] == "unplaced":
            screen.warn(f"{event['node']} waits: {event['reason']}")

    return note
