"""The engine on a GPU: whole calls and training alone, beside all cores and what PyTorch has, in one run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks import results


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    from hogwild.kernels.cuda_device import DeviceError, check_device

    try:
        check_device()
    except DeviceError as reason:
        print(f"{reason} Nothing is measured.")
        return
    import torch

    text = [f"{torch.cuda.get_device_name()}, torch {torch.__version__}. All kernels are compiled before.", ""]
    for title, about, head, lines in sections(quick):
        text += [f"## {title}", "", about, "", *results.table(head, lines()), ""]
        results.write("cuda_engine", "The engine on a GPU", text, out, printed=False)
        print("\n".join(text), flush=True)


def sections(quick: bool) -> list[tuple[str, str, list[str], Callable[[], list[list[str]]]]]:
    """Title, explanation, head of the table and its lines."""
    from benchmarks.cuda_engine import factorisation, linear, ratings, streaming

    def of_linear() -> list[list[str]]:
        return [line for task in linear.tasks(quick) for line in linear.lines_of(task, 2 if quick else linear.TURNS)]

    def of_streams() -> list[list[str]]:
        (task,) = linear.tasks(quick, ("rcv1",))
        return [streaming.line_of(streaming.repeated(task, copies), 3) for copies in streaming.COPIES]

    return [
        (
            "Linear models",
            (f"Logistic loss, l2={linear.L2:g}, the fewest epochs that come within 1% of the optimum, medians of "
            f"{linear.TURNS} turns, in turn. A whole call makes the problem from arrays, except where rows are there."),
            linear.HEAD, of_linear,
        ),
        (
            "Ratings",
            (f"{ratings.COUNT:,} generated ratings of {ratings.USERS:,} users and {ratings.ITEMS:,} items, rank "
            f"{ratings.RANK}; on the GPU the fewest epochs that come to the held-out error of the cores."),
            ratings.HEAD, lambda: ratings.lines(quick),
        ),
        (
            "Factorisation machines",
            (f"{factorisation.ROWS:,} rows of {factorisation.FIELDS} fields and {factorisation.FEATURES:,} features, "
            "AdaGrad; on the GPU the fewest epochs that come to the held-out loss of the cores."),
            factorisation.HEAD, lambda: factorisation.lines(quick),
        ),
        (
            "Streams",
            (f"RCV1-like rows of {streaming.TIMES} times the memory that they may take on the GPU; medians of runs of "
            f"{streaming.EPOCHS} epochs, beside the rates of copies."),
            streaming.HEAD, of_streams,
        ),
    ]  # fmt: skip
