"""
Data larger than memory
=======================

Pack a file once, then train from the packed folder within a limit on memory.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import hogwild
from hogwild.data.generate import write


def main(rows: int = 200_000) -> None:
    with tempfile.TemporaryDirectory() as folder:
        text, packed = Path(folder, "clicks.svm.gz"), Path(folder, "clicks.packed")
        write("clicks", text, rows=rows, features=100_000)
        hogwild.data.pack([text], packed, memory=2**31)  # shuffled on disk; the input may be of any size
        data = hogwild.data.open(packed, memory="2GiB")
        train, test = data.split(0.1, seed=0)
        run = hogwild.minimise(hogwild.Linear(train, loss="logistic", l2=1e-6), budget=5, test=test)
    result = run.result
    print(f"{data.n_rows:,} rows, held-out log loss {result['test_loss']:.4f}, {result['test_accuracy']:.2%} right")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
