"""
A perceptron on sparse clicks
=============================

Generated clicks have 100,000 features, of which a row has a few. A perceptron updates the embeddings of those during
the backward pass.

.. code-block:: console

   $ python examples/sparse_clicks.py [ROWS] [WORKERS]
"""

import sys
import tempfile
from pathlib import Path

import torch

import hogwild
from hogwild.data.generate.sparse_records import SparseRecords


def main(rows: int = 200_000, workers: int = 2) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "clicks.tfrecord.gz")
        SparseRecords(rows, 100_000, min_nnz=5, max_nnz=40, classes=2, distribution="zipf", binary=True).write(path)
        print(f"{rows:,} rows written, {path.stat().st_size / 1e6:.1f} MB")
        data = hogwild.data.open(path)
    training, held_out = data.split(0.1, seed=0)
    train = hogwild.CSRDataset(training)
    test = hogwild.CSRDataset(held_out, train.labels, binary=train.binary)
    net = hogwild.SparseMLP(train.width, hidden=[32, 16], classes=2, binary=train.binary, update="adagrad")
    run = hogwild.minimise(
        hogwild.Module(net, torch.nn.functional.cross_entropy, train, batch=256),
        rule=lambda parameters: torch.optim.Adagrad(parameters, lr=0.02),
        strategy=hogwild.Hogwild(workers),
        budget=3,
        test=test,
    )
    reached = run.result["test_accuracy"]
    print(f"held out {100 * reached:.1f}%, {run.result['updates'] / run.seconds:,.0f} rows/s with {workers} workers")
    return reached


# Its worker processes begin as copies of one that another example has made in the same process of the build.
# sphinx_gallery_parallel = False
if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
