"""Every example runs, on little data."""

import gzip
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
ARGUMENTS = {
    "demo.py": ["2000", "2"],
    "own_loss.py": ["1000"],
    "packed.py": ["3000"],
    "text_pipeline.py": ["600"],
    "digits_mlp.py": ["2", "2"],
    "digits_cnn.py": ["1", "2"],
}


NEED_FILES = ("fashion_mnist.py",)  # tried below, on files made for it


@pytest.mark.parametrize("example", sorted({path.name for path in EXAMPLES.glob("*.py")} - set(NEED_FILES)))
def test_example(example):
    command = [sys.executable, "-W", "error", str(EXAMPLES / example), *ARGUMENTS[example]]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_demo_shows_every_strategy(capsys):
    results = runpy.run_path(str(EXAMPLES / "demo.py"))["main"](rows=2_000, epochs=2)
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("Serial", "Locked", "RoundRobin", "Hogwild"))
    assert all(result["loss"] < 1 and result["test_accuracy"] > 0.5 for result in results)


def test_fashion_mnist_reads_the_files_as_they_are_published(tmp_path):
    random = np.random.default_rng(0)
    for kind, count in (("train", 64), ("t10k", 32)):
        header = bytes([0, 0, 8, 3]) + b"".join(length.to_bytes(4, "big") for length in (count, 28, 28))
        images = gzip.compress(header + random.integers(0, 256, count * 784, np.uint8).tobytes())
        Path(tmp_path, f"{kind}-images-idx3-ubyte.gz").write_bytes(images)
        labels = bytes([0, 0, 8, 1]) + count.to_bytes(4, "big") + random.integers(0, 10, count, np.uint8).tobytes()
        Path(tmp_path, f"{kind}-labels-idx1-ubyte").write_bytes(labels)
    command = [sys.executable, "-W", "error", str(EXAMPLES / "fashion_mnist.py"), str(tmp_path), "1", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "epoch 1" in done.stdout
    assert Path(tmp_path, "fashion-mnist", "model.safetensors").exists()
