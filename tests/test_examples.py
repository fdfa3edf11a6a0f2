"""Every example runs, on little data."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
ARGUMENTS = {
    "demo.py": ["2000", "2"],
    "own_loop.py": ["3"],
    "own_loss.py": ["1000"],
    "packed.py": ["3000"],
    "text_pipeline.py": ["600"],
}


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("*.py")))
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
