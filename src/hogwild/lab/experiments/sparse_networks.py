"""Experiment on sparse networks: speed and loss against batch size, width and depth, on CPU and GPU."""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hogwild.data.generate.catalogue import classification
from hogwild.data.in_memory import InMemoryDataset
from hogwild.lab.experiment import Experiment, Point, Results, counted, gain, grid, ratio
from hogwild.lab.report_model import Chart, Finding, Part, Series, Table
from hogwild.machine import usable_cores
from hogwild.runtimes import Processes
from hogwild.stopping import Budget
from hogwild.strategies import Hogwild, Serial, Strategy
from hogwild.training.minimise import minimise

if TYPE_CHECKING:
    from hogwild.nn.csr_dataset import CSRDataset

FEATURES, NONZEROS, HELD_OUT, STEP = 50_000, 30, 0.2, 0.02
# The loss is that after the first epoch, in which every row is new. The speed is that of the other epochs, because
# processes start and code is compiled in the first.
EPOCHS = 3
CENTRE = {"batch": 256, "width": 64, "depth": 2}
SWEEPS = {"batch": (32, 128, 512, 2048, 8192), "width": (8, 32, 128, 512), "depth": (1, 3, 5)}
# PyTorch is not asked, because its import takes longer than a listing of the experiments.
DEVICES = ["cpu", *(["cuda"] if Path("/dev/nvidia0").exists() else [])]


@lru_cache(maxsize=1)
def _samples(rows: int, seed: int) -> tuple[CSRDataset, CSRDataset]:
    """Generate rows of ones with word-like feature frequencies, and hold out a share of them."""
    from hogwild.nn.csr_dataset import CSRDataset

    made = classification(rows, FEATURES, nonzeros=NONZEROS, seed=seed, binary=True)
    training, held_out = InMemoryDataset(made.rows, shuffled=True, name="generated").split(HELD_OUT, seed)
    samples = CSRDataset(training, width=FEATURES)
    return samples, CSRDataset(held_out, samples.labels, binary=samples.binary, width=FEATURES)


def trial(point: Point, seed: int) -> dict[str, Any]:
    """Train, and return the loss after one pass over the rows, and the speed of all passes after it."""
    import torch

    from hogwild.nn.sparse_mlp import SparseMLP
    from hogwild.problems.module import Module

    training, held_out = _samples(point["rows"], seed)
    torch.manual_seed(seed)
    hidden = [point["width"]] * point["depth"]
    net = SparseMLP(FEATURES, hidden, len(training.labels), training.binary, update="adagrad").to(point["device"])
    problem = Module(net, torch.nn.functional.cross_entropy, training, batch=point["batch"])
    # A GPU works on many samples of a batch at once; cores need a worker each.
    strategy: Strategy = Hogwild(usable_cores()) if point["device"] == "cpu" else Serial()
    run = minimise(
        problem, partial(torch.optim.Adagrad, lr=STEP), strategy=strategy, runtime=Processes(), budget=Budget(EPOCHS),
        test=held_out, seed=seed,
    )  # fmt: skip
    times = [record["seconds"] for record in run.history]
    seconds = times[-1] - times[0]
    return {
        "cores": usable_cores(), "samples_a_second": (EPOCHS - 1) * len(training) / seconds if seconds > 0 else None,
        "samples": len(training), "train_loss": run.history[0]["loss"], "test_loss": run.history[0]["test_loss"],
        "test_accuracy": run.history[0].get("test_accuracy"),
        "parameters": sum(part.numel() for part in net.parameters()),
    }  # fmt: skip


def read(results: Results) -> tuple[list[Finding], list[Part]]:
    """Compare speed and loss along each sweep, on each device."""
    findings: list[Finding] = []
    parts: list[Part] = []
    for name in CENTRE:
        sweep = _sweep(results, name)
        if len(sweep.values(name)) < 2:
            continue
        for device in sweep.values("device"):
            findings += _of_sweep(sweep.where(device=device), name, device)
        parts += [
            Chart(f"Speed by {name}", name, "samples per second", _lines(sweep, name, "samples_a_second"),
                  f"Samples per second against {name}, on each device.", log_x=True, log_y=True),
            Chart(f"Held-out loss by {name}", name, "held-out loss", _lines(sweep, name, "test_loss"),
                  f"Held-out loss after the same number of samples against {name}, on each device.", log_x=True),
        ]  # fmt: skip
    if len(results.values("device")) > 1:
        findings.append(_devices(results))
    settings = ("device", "batch", "width", "depth")
    tried = list(dict.fromkeys(tuple(record[name] for name in settings) for record in results.records))
    figures = ("parameters", "samples_a_second", "train_loss", "test_loss", "test_accuracy")
    parts.append(Table(
        "All of it", (*settings, "parameters", "samples per second", "training loss", "held-out loss", "accuracy"),
        tuple(
            (*values, *(str(results.mean(figure, **dict(zip(settings, values, strict=True)))) for figure in figures))
            for values in tried
        ),
    ))  # fmt: skip
    return findings, parts


def _sweep(results: Results, name: str) -> Results:
    """Return the trials in which all settings but one are those of the centre."""
    return results.where(**{other: value for other, value in CENTRE.items() if other != name})


def _lines(sweep: Results, name: str, figure: str) -> tuple[Series, ...]:
    return tuple(sweep.over(name, figure, device, device=device) for device in sweep.values("device"))


def _of_sweep(sweep: Results, name: str, device: str) -> list[Finding]:
    """Compare speed and loss at the ends of a sweep, where they are known; none for fewer than two values."""
    values = sorted(sweep.values(name))
    speed = {value: sweep.mean("samples_a_second", **{name: value}) for value in values}
    loss = {value: sweep.mean("test_loss", **{name: value}) for value in values}
    fast, trained = ([value for value in values if means[value].count] for means in (speed, loss))
    words = []
    if len(fast) > 1:
        least, most = fast[0], fast[-1]
        words.append(
            f"a {name} of {most:,} trains {gain(speed[most], speed[least])} times as many samples a second as one of "
            f"{least:,} ({speed[most]} and {speed[least]})"
        )
    if len(trained) > 1:
        least, most = trained[0], trained[-1]
        best = min(trained, key=lambda value: loss[value].value)
        between = f"; least with {best:,}, {loss[best]}" if best not in (least, most) else ""
        words.append(
            f"after the same number of samples the held-out loss is {loss[least]} with a {name} of {least:,} and "
            f"{loss[most]} with {most:,}{between}"
        )
    return [Finding(f"On {device}, {'; '.join(words)}.")] if words else []


def _devices(results: Results) -> Finding:
    """Compare the GPU with the CPU at every setting of both."""
    points = {tuple(record[name] for name in CENTRE) for record in results.records}
    ratios = {}
    for values in sorted(points):
        key = dict(zip(CENTRE, values, strict=True))
        here, there = (results.mean("samples_a_second", device=device, **key) for device in ("cpu", "cuda"))
        if (times := ratio(there, here)).count:
            ratios[values] = times.value
    if not ratios:
        return Finding("No setting has a speed on both devices.")
    least, most = (choose(ratios, key=lambda values: ratios[values]) for choose in (min, max))
    words = [
        f"{ratios[values]:.2f} (batch {values[0]}, width {values[1]}, depth {values[2]})" for values in (least, most)
    ]
    return Finding(
        f"The GPU trains {' to '.join(dict.fromkeys(words))} times as many samples a second as "
        f"{counted(results.records[0]['cores'], 'core')}."
    )


def _points(rows: int, sweeps: dict[str, tuple[int, ...]], devices: list[str]) -> list[dict[str, Any]]:
    """Return the centre, and each sweep through it."""
    settings = [CENTRE, *({**CENTRE, name: value} for name, values in sweeps.items() for value in values)]
    return [{**point, **setting, "rows": rows} for point in grid(device=devices) for setting in settings]


experiment = Experiment(
    "sparse-networks",
    "Sparse networks: how fast by batch size, width and depth, on CPU and GPU?",
    "A perceptron whose input is tens of thousands of features wide and almost empty: how many samples a second "
    "does it train on, and what does it come to after the same number of samples, by batch size, width and depth?",
    f"Generated rows of {NONZEROS} ones among {FEATURES:,} features, two classes, a fifth held out; {EPOCHS} epochs "
    f"of AdaGrad with a step of {STEP:g}, on the CPU by one process per core that share one memory (Hogwild!), on a "
    "GPU, where there is one, by one process. "
    f"The centre of all sweeps is a batch of {CENTRE['batch']}, a width of {CENTRE['width']} and a depth of "
    f"{CENTRE['depth']}, and one of them changes at a time; all hidden layers are equally wide, and the first is the "
    "table of embeddings. The step is the same for every batch, so that larger batches make fewer steps of the same "
    "size. The loss is that after the first epoch, in which every row is new: later the networks learn these rows by "
    "heart. The speed is that of the other epochs.",
    _points(200_000, SWEEPS, DEVICES),
    _points(20_000, {"batch": (32, 2048), "width": (256,), "depth": (4,)}, DEVICES),
    trial,
    read,
    seconds=(600, 23),
    seeds=(3, 1),
    timed=True,
)  # fmt: skip
