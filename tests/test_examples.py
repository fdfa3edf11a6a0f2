"""Every example runs, on little data."""

import doctest
import gzip
import importlib
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SOURCE = EXAMPLES.parent / "src" / "hogwild"
ARGUMENTS = {
    "criteo.py": ["3000"],
    "own_loop.py": ["3"],
    "own_loss.py": ["1000"],
    "packed.py": ["3000"],
    "segmentation.py": ["40"],
    "text_pipeline.py": ["600"],
}


# Networks are trained in this process, where PyTorch is loaded once for all of them: below.
# So are the demo and what is simulated.
HERE = ("demo.py", "films.py", "interactions.py", "count_conflicts.py", "sparse_clicks.py", "staleness.py")
NETWORKS = {"digits_cnn.py": ["1", "2"], "digits_mlp.py": ["3", "2"], "fashion_mnist.py": ["", "1", "2"]}


@pytest.mark.parametrize("example", sorted({path.name for path in EXAMPLES.glob("*.py")} - {*HERE, *NETWORKS}))
def test_example(example):
    command = [sys.executable, "-W", "error", str(EXAMPLES / example), *ARGUMENTS[example]]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_demo_shows_every_strategy(capsys):
    demo = runpy.run_path(str(EXAMPLES / "demo.py"))
    demo["main"].__globals__["SECONDS"] = 0.05
    curves, rates = demo["main"](rows=2_000)
    shown = capsys.readouterr().out
    assert all(
        name in shown
        for name in ("scikit-learn", "HogwildClassifier", "Serial", "Hogwild", "Locked", "RoundRobin", "Next:")
    )
    assert [len(curve.losses) for curve in curves] == [demo["EPOCHS"]] * 4
    assert all(0 < min(curve.losses) < 0.7 for curve in curves[2:])  # those of minimise
    assert all(rate > 0 for rate in rates.values())


def test_what_the_page_on_messages_shows_is_so():
    found = doctest.testfile(str(EXAMPLES.parent / "docs" / "guide" / "messages.md"), module_relative=False)
    assert found.failed == 0 < found.attempted


def test_the_slow_worker_holds_up_those_who_wait_for_it(capsys):
    asynchronous, bounded, synchronous = runpy.run_path(str(EXAMPLES / "staleness.py"))["main"](rows=200, epochs=2)
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("asynchronous", "staleness=3", "synchronous"))
    assert asynchronous.seconds < bounded.seconds
    assert asynchronous.idle["idle_share"] < synchronous.idle["idle_share"]
    means = {name: each["mean"] for name, each in asynchronous.staleness["workers"].items()}
    assert max(means, key=means.get) == "worker-3"
    assert asynchronous.staleness["most"] > bounded.staleness["most"] > synchronous.staleness["most"] == 0


def test_collisions_are_seen(capsys):
    dense, _, sparse = runpy.run_path(str(EXAMPLES / "count_conflicts.py"))["main"](rows=20_000)
    assert "met another" in capsys.readouterr().out
    assert dense["predicted"]["missed"] > sparse["predicted"]["missed"]
    assert dense["updates"] == sparse["updates"] == 20_000


def test_features_that_meet_are_learnt(capsys):
    found = runpy.run_path(str(EXAMPLES / "interactions.py"))["main"](rows=10_000, epochs=8)
    assert found["fm"] < found["ffm"] < found["linear"]
    assert "held-out log loss" in capsys.readouterr().out


def test_films_are_recommended(capsys, tmp_path):
    from hogwild.data.generate.ratings import write_ratings

    main = runpy.run_path(str(EXAMPLES / "films.py"))["main"]
    assert main(rows=8_000) < 1.0
    shown = capsys.readouterr().out
    assert all(words in shown for words in ("held-out RMSE", "to ", "like ", "somebody new"))
    write_ratings(tmp_path / "u.data", users=100, items=80, n_rows=2_000, rank=2)
    assert main(str(tmp_path / "u.data")) < 1.2


def test_what_the_page_on_ratings_shows_is_so():
    found = doctest.testfile(str(EXAMPLES.parent / "docs" / "guide" / "ratings.md"), module_relative=False)
    assert found.failed == 0 < found.attempted


def test_what_the_page_on_own_parts_shows_is_so():
    page, options = EXAMPLES.parent / "docs" / "guide" / "own_parts.md", doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    found = doctest.testfile(str(page), module_relative=False, optionflags=options)
    assert found.failed == 0 < found.attempted


def test_what_the_page_on_landscapes_shows_is_so():
    found = doctest.testfile(str(EXAMPLES.parent / "docs" / "guide" / "landscape.md"), module_relative=False)
    assert found.failed == 0 < found.attempted


def test_whole_numbers_of_docstrings_are_those():
    """pytest's NUMBER takes 0. for 1., as it has no digit after its point; such docstrings are compared as text."""
    blurred = re.compile(r"^ .*(?<![\w.])\d+\.[\]), ]", re.MULTILINE)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        if ">>> " not in text or not blurred.search(text):
            continue
        module = importlib.import_module(".".join(path.relative_to(SOURCE.parent).with_suffix("").parts))
        for test in doctest.DocTestFinder().find(module):
            if any(re.search(r"(?<![\w.])\d+\.(?![\d.])", example.want) for example in test.examples):
                runner.run(test)
    assert runner.failures == 0 < runner.tries


@pytest.mark.parametrize("example", ["digits_cnn.py", "digits_mlp.py"])
def test_networks_learn_digits(example, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [example, *NETWORKS[example]])
    runpy.run_path(str(EXAMPLES / example), run_name="__main__")
    shown = capsys.readouterr().out
    reached = [float(part.split("%")[0]) for part in shown.split("held out ")[1:]]
    assert max(reached) > 70
    assert "samples/s" in shown


def test_a_sparse_perceptron_learns_clicks(capsys):
    reached = runpy.run_path(str(EXAMPLES / "sparse_clicks.py"))["main"](rows=6_000, workers=2)
    assert reached > 0.6
    assert "rows/s" in capsys.readouterr().out


def test_fashion_mnist_reads_the_files_as_they_are_published(tmp_path, monkeypatch, capsys):
    random = np.random.default_rng(0)
    for kind, count in (("train", 64), ("t10k", 32)):
        header = bytes([0, 0, 8, 3]) + b"".join(length.to_bytes(4, "big") for length in (count, 28, 28))
        images = gzip.compress(header + random.integers(0, 256, count * 784, np.uint8).tobytes())
        Path(tmp_path, f"{kind}-images-idx3-ubyte.gz").write_bytes(images)
        labels = bytes([0, 0, 8, 1]) + count.to_bytes(4, "big") + random.integers(0, 10, count, np.uint8).tobytes()
        Path(tmp_path, f"{kind}-labels-idx1-ubyte").write_bytes(labels)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["fashion_mnist.py", str(tmp_path), *NETWORKS["fashion_mnist.py"][1:]])
    runpy.run_path(str(EXAMPLES / "fashion_mnist.py"), run_name="__main__")
    assert "epoch 1" in capsys.readouterr().out
    assert Path(tmp_path, "fashion-mnist", "model.safetensors").exists()
