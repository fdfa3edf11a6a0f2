"""Summary of a run for the terminal and for ``--json``, messages and staleness included."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hogwild.cli.console import counted

if TYPE_CHECKING:
    from hogwild.data import Dataset
    from hogwild.data.ratings import Ratings
    from hogwild.events import Event, Record
    from hogwild.nn.csr_dataset import CSRDataset
    from hogwild.run import Run


STALER = 1.5  # ratio to the mean staleness above which the summary names the stalest worker


def message_summary(run: Run, virtual: bool, real_seconds: float) -> dict[str, Any]:
    """Return the part of a record about messages; all values are null where workers share memory."""
    traffic: Record = run.traffic or {}
    virtual = virtual and run.traffic is not None  # Ctrl-C in the search for a penalty: a run on threads
    idle: Record = run.idle or {}
    topology = next((event for event in run.events if event["event"] == "topology"), None)
    return {
        "staleness": None if run.staleness is None else _figures(run.staleness),
        "messages": traffic.get("messages"),
        "bytes": traffic.get("bytes"),
        "traffic": None if run.traffic is None else _figures(run.traffic),
        "idle_share": idle.get("idle_share"),
        "crashes": idle.get("crashes"),
        "topology": None if topology is None else _figures(topology),
        "consensus": run.result.get("consensus"),
        "simulated_seconds": run.seconds if virtual else None,
        "real_seconds": real_seconds if virtual else None,
    }


def _figures(event: Event) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name not in ("event", "at")}


def in_words(record: dict[str, Any]) -> dict[str, str]:
    """Return the same summary in words, one line per entry."""
    if record["staleness"] is None:
        return {}
    lines = {"staleness": _staleness(record["staleness"]), "messages": _messages(record)}
    lines["idle"] = f"{record['idle_share']:.1%} of the workers' time"
    if record["crashes"]:
        lines["crashes"] = str(record["crashes"])
    if record["topology"]:
        gap, neighbours = record["topology"]["spectral_gap"], record["topology"]["neighbours"]["most"]
        lines["topology"] = f"{record['topology']['topology']}, up to {neighbours} neighbours, spectral gap {gap:.3g}"
    if record["consensus"]:
        lines["consensus"] = f"workers are {record['consensus']:.1e} of the parameters' size apart"
    return lines


def _staleness(figures: dict[str, Any]) -> str:
    """Return the staleness in words: the number of changes by other workers between a read and a write.

    >>> _staleness({"mean": 2.5, "median": 3, "p95": 4, "most": 9, "workers": {"worker-0": {"mean": 9.0}}})
    '2.5 changes by others on average, median 3, 95% up to 4, at most 9; worker-0 has the most: 9.0 on average'
    """
    text = (
        f"{figures['mean']:.1f} changes by others on average, median {figures['median']}, 95% up to {figures['p95']}, "
        f"at most {figures['most']}"
    )
    stalest = max(figures["workers"], key=lambda name: figures["workers"][name]["mean"], default=None)
    if stalest is None or figures["workers"][stalest]["mean"] <= STALER * figures["mean"]:
        return text
    return f"{text}; {stalest} has the most: {figures['workers'][stalest]['mean']:.1f} on average"


def _messages(record: dict[str, Any]) -> str:
    from hogwild.files import format_size

    text = f"{record['messages']:,}, {format_size(record['bytes'])}"
    traffic = record["traffic"]
    more = [f"{traffic[name]:,} {name}" for name in ("lost", "resent") if traffic.get(name)]
    return ", ".join([text, *more])


# Events that the record of a run contains.
RECORDED_EVENTS = ("workers", "replicas", "step chosen", "exchanges", "diverged", "loss rose", "resumed")


def scores_of(result: Event) -> list[str]:
    """Return the names of the scores of a run, those between ``loss`` and ``objective`` and those of held-out data.

    >>> scores_of({"loss": 0.5, "objective": 0.5, "test_loss": 0.7, "test_accuracy": 0.8})
    ['accuracy']
    >>> scores_of({"step": 0.1, "loss": 0.5, "accuracy": 0.9, "objective": 0.6, "test_loss": 0.7, "test_accuracy": 0.8})
    ['accuracy']
    """
    names = list(result)
    both = names[names.index("loss") + 1 : names.index("objective")]
    held_out = [name.removeprefix("test_") for name in names if name.startswith("test_")]
    return [*both, *(name for name in held_out if name not in (*both, "loss", "objective"))]


def record_of(
    run: Run,
    problem: Any,
    held_out: Dataset | Ratings | CSRDataset | None,
    load_seconds: float,
    out: Path | None,
) -> dict[str, Any]:
    """Return the result of a run as a record. A score without prefix is of held-out data, if there is any."""
    from hogwild.models.graph_cut import GraphCutModel

    result, figures = run.result, {}
    training = problem.dataset if problem.terms == "batches" else problem.data
    columns = None if problem.terms == "batches" else training.columns
    for score in scores_of(result):
        figures[score] = result.get(f"test_{score}", result.get(score))
        figures[f"train_{score}"], figures[f"test_{score}"] = result.get(score), result.get(f"test_{score}")
    return {
        "problem": run.config["problem"],
        "loss": result["loss"],
        "objective": result["objective"],
        "test_loss": result.get("test_loss"),
        **figures,
        **(run.model.figures if isinstance(run.model, GraphCutModel) else {}),
        "seconds": run.seconds,
        "load_seconds": load_seconds,
        "compile_seconds": run.compile_seconds,
        "rows": training.n_rows,
        "features": training.n_features if columns is None else columns.features,
        "present_features": None if columns is None else len(columns),
        "nonzeros": training.nonzeros,
        "sizes": problem.sizes,
        "test_rows": None if held_out is None else held_out.n_rows,
        "epochs": run.history[-1]["epoch"],
        "best_epoch": result["epoch"],
        "updates": run.history[-1]["updates"],
        "workers": run.config["workers"],
        "workers_used": max((each["workers_used"] for each in run.history if "workers_used" in each), default=None),
        "rule": run.config["rule"],
        "schedule": run.config["schedule"],
        "seed": run.config["seed"],
        "stop_reason": run.stop_reason,
        "model": out,
        "conflicts": run.conflicts,
        "history": run.history,
        "events": [event for event in run.events if event["event"] in RECORDED_EVENTS],
    }


def _sizes(record: dict[str, Any]) -> str:
    if record["sizes"]:
        return ", ".join(f"{count:,} {what}" for what, count in record["sizes"].items())
    some = f" ({record['present_features']:,} of them in the rows)" if record["present_features"] else ""
    return f"{record['rows']:,} rows x {record['features']:,} features{some}, {record['nonzeros']:,} non-zeros"


def _epochs(record: dict[str, Any]) -> str:
    return counted(record["epochs"], "epoch")


def _where(record: dict[str, Any]) -> str:
    return "" if record["runtime"] == "threads" else f", {record['runtime']}"


def _idle(record: dict[str, Any]) -> str:
    """Return a remark on workers that made no update, with the reason if the run has recorded it.

    >>> _idle({"workers": 2, "workers_used": 2, "events": []})
    ''
    >>> _idle({"workers": 2, "workers_used": 1, "events": [{"event": "workers", "message": "1 of 2 workers trained"}]})
    '; 1 of 2 workers trained'
    """
    used = record["workers_used"]
    if used is None or used >= record["workers"]:
        return ""
    messages = [event["message"] for event in record["events"] if event["event"] == "workers"]
    return f"; {messages[-1]}" if messages else f"; {used} of them trained"


def _simulated(record: dict[str, Any]) -> str:
    return "" if record["simulated_seconds"] is None else f" simulated (in {record['real_seconds']:.1f} s)"


def _observed(seen: Event | None) -> dict[str, str]:
    """Return the counted conflicts of workers in shared memory, in words."""
    if seen is None:
        return {}
    stale, expected = seen["staleness"], seen["predicted"]
    return {
        "staleness": f"{stale['mean']:.2f} updates on average, 95% at most {stale['p95']}",
        "collisions": f"{seen['collided']:.2%} of updates; {expected['collided']:.2%} were to be expected",
        "lost": f"{seen['lost_writes']:,} of {seen['writes']:,} writes",
    }


def picture_of(record: dict[str, Any]) -> list[Any]:
    """Return the result of a run as a table for people."""
    from rich.table import Table
    from rich.text import Text

    scores = [name.removeprefix("train_") for name in record if name.startswith("train_")]
    table = Table(show_header=False, box=None, padding=(0, 2))
    rate = record["updates"] / record["seconds"] if record["seconds"] else 0.0
    lines = {
        "data": _sizes(record),
        "workers": f"{record['workers']} ({record['strategy']}){_where(record)}{_idle(record)}",
        "time": f"{record['seconds']:.2f} s{_simulated(record)}, {rate:,.0f} rows/s, {_epochs(record)}",
        **in_words(record),
        **_observed(record["conflicts"]),
        "stopped by": record["stop_reason"],
        "objective": f"{record['objective']:.6f}",
        "loss": f"{record['loss']:.6f}",
        **{
            score.replace("_", " "): f"{record[f'train_{score}']:.4f}"
            for score in scores
            if record[f"train_{score}"] is not None
        },
    }
    if "cut" in record:
        lines["cut"] = f"{record['cut']:.6g}"
    if record["test_loss"] is not None:
        lines["held-out loss"] = f"{record['test_loss']:.6f}"
        lines |= {f"held-out {score}": f"{record[f'test_{score}']:.4f}" for score in scores}
    if record["model"]:
        lines["model"] = str(record["model"])
    for name, text in lines.items():
        table.add_row(Text(name, style="dim"), Text(text))
    return [table]
