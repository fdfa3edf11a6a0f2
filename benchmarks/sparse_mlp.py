"""A perceptron on a million-wide sparse input: rows/s of ours and of ``nn.EmbeddingBag(sparse=True)``."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import hogwild
from benchmarks import results
from hogwild.nn import sparse_table_cpu

BATCH, LEAST, MOST, CLASSES, RATE = 1024, 10, 100, 10, 0.1
Batch = tuple[Tensor, ...]
Step = Callable[[int], Any]


class Bag(nn.Module):
    """The same net on PyTorch's own layer."""

    def __init__(self, like: hogwild.SparseMLP, large: bool) -> None:
        super().__init__()
        weight = like.table.weight.detach()
        weight = sparse_table_cpu.empty(*weight.shape).copy_(weight) if large else weight.clone()
        self.bag = nn.EmbeddingBag.from_pretrained(
            weight, freeze=False, mode="sum", sparse=True, include_last_offset=True
        )  # fmt: skip
        self.bias = nn.Parameter(like.bias.detach().clone())
        self.layers = nn.Sequential(*(_copy(layer) for layer in like.layers))

    def forward(self, indices: Tensor, offsets: Tensor, values: Tensor | None = None) -> Tensor:
        return self.layers(self.bag(indices, offsets, per_sample_weights=values) + self.bias)


def _copy(layer: nn.Module) -> nn.Module:
    if not isinstance(layer, nn.Linear):
        return nn.ReLU()
    twin = nn.Linear(layer.in_features, layer.out_features).to(layer.weight.device)
    twin.load_state_dict(layer.state_dict())
    return twin


def batches(count: int, width: int, distribution: str, binary: bool, device: str, seed: int = 0) -> list[Batch]:
    """Samples with 10 to 100 non-zeros, all different, in the device's memory."""
    rng, made = np.random.default_rng(seed), []
    for _ in range(count):
        lengths = rng.integers(LEAST, MOST + 1, BATCH)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        if distribution == "zipf":
            indices = (np.exp(rng.random(offsets[-1]) * np.log(width)) - 1).astype(np.int64)
        else:
            indices = rng.integers(0, width, offsets[-1])
        parts: list[Any] = [indices, offsets]
        if not binary:
            parts.append(rng.standard_normal(offsets[-1], np.float32))
        parts.append(rng.integers(0, CLASSES, BATCH))
        made.append(tuple(torch.from_numpy(part).to(device) for part in parts))
    return made


def narrow(some: list[Batch]) -> list[Batch]:
    """The same with indices in 32 bits."""
    return [(batch[0].int(), *batch[1:]) for batch in some]


def net_of(width: int, hidden: list[int], binary: bool, update: str, device: str) -> hogwild.SparseMLP:
    torch.manual_seed(0)
    with torch.device(device):
        return hogwild.SparseMLP(width, hidden, CLASSES, binary, update=update)


def ours(net: hogwild.SparseMLP, given: list[Batch], fused: bool) -> Step:
    dense = [one for one in net.parameters() if one is not net.table.weight]
    optimiser = torch.optim.SGD(dense, lr=RATE, fused=fused)
    net.follow(optimiser)

    def step(number: int) -> Any:
        *inputs, target = given[number % len(given)]
        loss = nn.functional.cross_entropy(net(*inputs), target)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        return loss

    return step


def theirs(like: hogwild.SparseMLP, given: list[Batch], narrow_offsets: bool = False, large: bool = False) -> Step:
    """Its own optimiser for the dense layers, so that their step can be fused: faster than one for all."""
    net = Bag(like, large)
    dense = [one for name, one in net.named_parameters() if not name.startswith("bag.")]
    table, rest = torch.optim.SGD(net.bag.parameters(), lr=RATE), torch.optim.SGD(dense, lr=RATE, fused=True)
    if narrow_offsets:
        given = [(batch[0].int(), batch[1].int(), *batch[2:]) for batch in given]

    def step(number: int) -> Any:
        *inputs, target = given[number % len(given)]
        loss = nn.functional.cross_entropy(net(*inputs), target)
        table.zero_grad(set_to_none=True)
        rest.zero_grad(set_to_none=True)
        loss.backward()
        table.step()
        rest.step()
        return loss

    return step


def graphed(net: hogwild.SparseMLP, given: list[Batch]) -> Step:
    dense = [one for one in net.parameters() if one is not net.table.weight]
    optimiser = torch.optim.SGD(dense, lr=RATE, fused=True)
    step = hogwild.CUDAGraphStep(net, nn.functional.cross_entropy, optimiser, BATCH, BATCH * MOST)
    return lambda number: step(*given[number % len(given)])


def contestants(width: int, hidden: list[int], distribution: str, device: str, count: int) -> dict[str, Step]:
    valued, ones = (batches(count, width, distribution, binary, device) for binary in (False, True))

    def new(binary: bool, update: str = "sgd") -> hogwild.SparseMLP:
        return net_of(width, hidden, binary, update, device)

    found = {
        "EmbeddingBag, values": theirs(new(False), valued),
        "EmbeddingBag, values, 32-bit indices": theirs(new(False), valued, True),
        "EmbeddingBag, no values": theirs(new(True), ones),
        **(
            {
                "EmbeddingBag, values, large pages": theirs(new(False), valued, large=True),
                "EmbeddingBag, no values, large pages": theirs(new(True), ones, large=True),
            }
            if device == "cpu"
            else {}
        ),
        "ours, values": ours(new(False), narrow(valued), True),
        "ours, binary": ours(new(True), narrow(ones), True),
        "ours, values, AdaGrad": ours(new(False, "adagrad"), narrow(valued), True),
        "ours, binary, AdaGrad": ours(new(True, "adagrad"), narrow(ones), True),
    }
    if device == "cuda":
        found |= {
            "ours, values, one graph": graphed(new(False), narrow(valued)),
            "ours, binary, one graph": graphed(new(True), narrow(ones)),
            "ours, values, AdaGrad, one graph": graphed(new(False, "adagrad"), narrow(valued)),
        }
    return found


def same_losses(steps: dict[str, Step], device: str) -> float:
    """The largest relative difference, after some steps, between losses of those that do the same arithmetic."""
    after = {name: [step(k).item() for k in range(4)][-1] for name, step in steps.items() if "AdaGrad" not in name}
    groups = ([loss for name, loss in after.items() if ("binary" in name or "no values" in name) == binary]
              for binary in (False, True))  # fmt: skip
    return max(max(group) / min(group) - 1 for group in groups)


def timed(step: Step, count: int, device: str) -> float:
    """Rows/s."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    wait()
    begun = time.perf_counter()
    for number in range(count):
        step(number)
    wait()
    return count * BATCH / (time.perf_counter() - begun)


def measured(width: int, hidden: list[int], distribution: str, device: str, count: int, turns: int) -> list[str]:
    """All of them in turn, again and again: ratios are within a turn."""
    steps = contestants(width, hidden, distribution, device, min(count, 20))
    apart = same_losses(steps, device)
    if apart > 0.02:
        raise AssertionError(f"they do not do the same: losses differ by {apart:.1%}")
    rates: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(turns):
        for name, step in steps.items():
            timed(step, 2, device)
            rates[name].append(timed(step, count, device))
        print(distribution, hidden, *(f"{found[-1]:,.0f}" for found in rates.values()), flush=True)
    rows = []
    for name, found in rates.items():
        without = "binary" in name or "no values" in name
        peers = [peer for peer in rates if peer.startswith("EmbeddingBag") and ("no values" in peer) == without]
        best = max(peers, key=lambda peer: statistics.median(rates[peer]))
        ratios = [mine / other for mine, other in zip(found, rates[best], strict=True)]
        rows.append([name, f"{statistics.median(found):,.0f}", results.span(ratios, ".2f", "x")])
    title = f"Widths {', '.join(map(str, hidden))}, {distribution} indices (losses after 4 steps within {apart:.1e}):"
    return [title, "", *results.table(["what", "rows/s, median", "times EmbeddingBag's best"], rows), ""]


def through_minimise(width: int, rows: int, epochs: int, turns: int) -> list[str]:
    """Whole runs on a GPU, batches made on the way: rows/s after the first epoch, which compiles and captures."""
    from scipy.sparse import csr_array

    parts = batches(rows // BATCH, width, "uniform", False, "cpu")
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part[1]) for part in parts]))])
    columns, values, labels = (np.concatenate([part[k] for part in parts]) for k in (0, 2, 3))
    samples = hogwild.CSRDataset((csr_array((values, columns, offsets), (len(labels), width)), labels.astype(float)))
    rates: dict[str, list[float]] = {"EmbeddingBag": [], "ours": [], "ours, AdaGrad": []}
    for _ in range(turns):
        for name, found in rates.items():
            like = net_of(width, [64, 64], False, "adagrad" if "Ada" in name else "sgd", "cuda")
            net: nn.Module = Bag(like, False) if name == "EmbeddingBag" else like
            rule = torch.optim.Adagrad if "Ada" in name else torch.optim.SGD
            problem = hogwild.Module(net, nn.functional.cross_entropy, samples, batch=BATCH)
            run = hogwild.minimise(problem, rule, hogwild.Constant(RATE), hogwild.Serial(), budget=epochs)
            first, last = run.history[0], run.history[-1]
            found.append((last["updates"] - first["updates"]) / (last["seconds"] - first["seconds"]))
    lines = [
        [name, f"{statistics.median(found):,.0f}",
         results.span([one / other for one, other in zip(found, rates["EmbeddingBag"], strict=True)], ".2f", "x")]
        for name, found in rates.items()
    ]  # fmt: skip
    return [
        f"Through `minimise`, one worker, {len(labels):,} rows in memory, batches made by other threads on the way:",
        "", *results.table(["what", "rows/s, median", "times EmbeddingBag"], lines), "",
    ]  # fmt: skip


def profiled(width: int, hidden: list[int], device: str, count: int) -> str:
    """Where the time of a step goes."""
    net, given = net_of(width, hidden, False, "sgd", device), narrow(batches(10, width, "uniform", False, device))
    step = ours(net, given, True)
    for number in range(3):
        step(number)
    profile = hogwild.StepProfile(net)
    for number in range(count):
        begun = time.perf_counter()
        step(number)
        if device == "cuda":
            torch.cuda.synchronize()
        profile.step(time.perf_counter() - begun)
    return str(profile)


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
        measure(device, out, quick)


def measure(device: str, out: Path, quick: bool) -> None:
    width, count, turns = (10_000, 4, 1) if quick else (1_000_000, 50 if device == "cuda" else 10, 5)
    settings = [([64, 64], "uniform"), ([64, 64], "zipf"), ([16, 64], "uniform")]
    settings += [([256, 64], "uniform")] * (device == "cuda")  # ten tables of a gigabyte each
    on_gpu = device == "cuda"
    spins = os.environ.get("GOMP_SPINCOUNT")
    waiting = f" that sleep while they wait (GOMP_SPINCOUNT={spins})" if spins else ""
    where = torch.cuda.get_device_name() if device == "cuda" else f"{torch.get_num_threads()} threads{waiting}"
    text = [
        f"{where}, torch {torch.__version__}. Input {width:,} wide, batches of {BATCH:,} rows with {LEAST} to {MOST}",
        f"non-zeros, {CLASSES} classes, SGD; batches wait in the device's memory. {turns} turns in which each has one;",
        "ratios are within a turn, to the fastest of EmbeddingBag's settings with the same input (values or none).",
        "Without values EmbeddingBag reads none either; its dense layers have a fused SGD of their own.",
        *(
            ["Large pages: as ours, EmbeddingBag's table is in pages of 2 MiB (with PyTorch, THP_MEM_ALLOC_ENABLE=1)."]
            * (not on_gpu)
        ),
        *(["One graph: a whole step captured as a CUDA graph, which sparse gradients do not allow."] * on_gpu),
        "",
    ]
    for hidden, distribution in settings[: 1 if quick else None]:
        text += measured(width, hidden, distribution, device, count, turns)
    if on_gpu:
        text += through_minimise(width, *((4096, 2, 1) if quick else (200 * BATCH, 6, 3)))
    text.append(f"Of ours with values, widths 64, 64, each part waited for: {profiled(width, [64, 64], device, 20)}.")
    name = "sparse_mlp_gpu" if device == "cuda" else "sparse_mlp"
    results.write(name, "Sparse embeddings in front of a network", text, out)
