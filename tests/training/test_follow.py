"""Learning online from files that grow and from pipes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import hogwild
from hogwild import losses, rules
from hogwild.cli import main
from hogwild.data import ReadOptions
from hogwild.data.followed_lines import FilePosition, FollowedLines
from hogwild.data.text_limits import TextLimits
from hogwild.errors import CheckpointError, DataError, DivergedError, ParameterError
from hogwild.training.follow import Progress, follow
from hogwild.training.online import OnlineLinear

RANDOM = np.random.default_rng(5)
N, D = 600, 30
PRESENT = [np.sort(RANDOM.choice(D, 5, replace=False)) for _ in range(N)]
VALUES = RANDOM.normal(size=(N, 5)).astype(np.float32).round(3)
TRUTH = RANDOM.normal(size=D)
LABELS = [1 if values @ TRUTH[columns] > 0 else 0 for columns, values in zip(PRESENT, VALUES, strict=True)]
LINES = [
    f"{label} " + " ".join(f"{column + 1}:{value}" for column, value in zip(columns, values, strict=True)) + "\n"
    for label, columns, values in zip(LABELS, PRESENT, VALUES, strict=True)
]
TEXT = "".join(LINES).encode()
NEVER = SimpleNamespace(pressed=False)


def adagrad_reference(step: float, l2: float = 0.0) -> tuple[np.ndarray, float, float]:
    """Weights, intercept and mean progressive loss of logistic regression, by one loop."""
    weights, squares, bias, bias_squares, total = np.zeros(D + 1), np.full(D + 1, 1e-6), 0.0, 1e-6, 0.0
    for label, columns, values in zip(LABELS, PRESENT, VALUES, strict=True):
        y, at = 2 * label - 1, columns + 1
        z = weights[at] @ values + bias
        total += np.log1p(np.exp(-y * z))
        slope = -y / (1 + np.exp(y * z))
        g = slope * values
        squares[at] += g * g
        root = np.sqrt(squares[at])
        weights[at] -= step * (g + l2 * weights[at]) / (root + step * l2)
        bias_squares += slope * slope
        bias -= step * slope / np.sqrt(bias_squares)
    return weights, bias, total / N


def online(**options: object) -> OnlineLinear:
    return OnlineLinear(losses.named("logistic"), rules.named("adagrad"), 0.3, **options)  # type: ignore[arg-type]


def learnt(path: Path, learner: OnlineLinear, start: FilePosition | None = None) -> FilePosition:
    with FollowedLines(str(path), start) as lines:
        assert follow(lines, learner, ReadOptions(), NEVER, seconds=0.0).reason == "seconds"
        return lines.position


@pytest.mark.parametrize("l2", [0.0, 0.01])
def test_rows_are_learnt_once_and_in_order(tmp_path: Path, l2: float) -> None:
    path = tmp_path / "a.svm"
    path.write_bytes(TEXT)
    learner = online(l2=l2)
    assert learnt(path, learner).offset == len(TEXT)
    weights, bias, loss = adagrad_reference(0.3, l2)
    model = learner.model({})
    np.testing.assert_allclose(model.weights[:, 0], weights, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(model.intercept[0], bias, rtol=1e-3)
    assert learner.progress.rows == N
    assert learner.progress.mean == pytest.approx(loss, rel=1e-4)
    assert np.mean(model.predict(str(path)) == LABELS) > 0.85


def test_a_file_that_grows_within_lines(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole.svm", tmp_path / "parts.svm"
    whole.write_bytes(TEXT)
    first, second = online(), online()
    learnt(whole, first)
    parts.touch()
    with FollowedLines(str(parts)) as lines:
        assert lines.next(0) is None
        for at in range(0, len(TEXT), 997):
            with parts.open("ab") as file:
                file.write(TEXT[at : at + 997])
            follow(lines, second, ReadOptions(), NEVER, seconds=0.0)
            assert second.progress.rows == TEXT[: at + 997].count(b"\n")
    a, b = first.model({}), second.model({})
    np.testing.assert_array_equal(a.weights, b.weights)
    assert first.progress.total == pytest.approx(second.progress.total)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: path.write_bytes(TEXT[:100]), "was cut to 100 bytes"),
        (lambda path: path.write_bytes(b"0 1:7\n" * 20_000), "are others now"),
        (lambda path: path.unlink(), "was removed"),
        (lambda path: (path.rename(f"{path}.1"), path.write_bytes(TEXT)), "another file has taken its place"),
    ],
    ids=["cut", "rewritten", "removed", "replaced"],
)
def test_a_file_that_does_not_only_grow(tmp_path: Path, change, message: str) -> None:
    path = tmp_path / "a.svm"
    path.write_bytes(TEXT)
    learner = online()
    with FollowedLines(str(path)) as lines:
        follow(lines, learner, ReadOptions(), NEVER, seconds=0.0)
        change(path)
        with pytest.raises(DataError, match=rf"a.svm: .*{message}"):
            follow(lines, learner, ReadOptions(), NEVER)
    assert learner.progress.rows == N


def test_what_is_not_followed(tmp_path: Path) -> None:
    import gzip

    (tmp_path / "a.svm").write_bytes(gzip.compress(TEXT))
    with pytest.raises(DataError, match="compressed file cannot be followed"):
        FollowedLines(str(tmp_path / "a.svm"))
    with pytest.raises(ParameterError, match="Remote files cannot be followed"):
        FollowedLines("https://example.org/a.svm")
    with pytest.raises(DataError, match="no such file"):
        FollowedLines(str(tmp_path / "b.svm"))
    with pytest.raises(DataError, match="this is a folder"):
        FollowedLines(str(tmp_path))
    (tmp_path / "c.ffm").write_text("1 0:1:1\n")
    with pytest.raises(DataError, match="libffm data cannot be followed"):
        learnt(tmp_path / "c.ffm", online())
    (tmp_path / "d.svm").write_bytes(b"1" * 1000)
    with (
        FollowedLines(str(tmp_path / "d.svm"), limits=TextLimits(longest_line=100)) as lines,
        pytest.raises(DataError, match=r"d.svm, line 1: the line is longer than 100 B"),
    ):
        lines.next(0)


def test_a_bad_line_ends_it_before_its_batch(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_bytes(TEXT)
    learner = online()
    with FollowedLines(str(path)) as lines:
        follow(lines, learner, ReadOptions(), NEVER, seconds=0.0)
        with path.open("ab") as file:
            file.write(b"1 1:1\n1 x:1\n")
        with pytest.raises(DataError, match=rf"a.svm, line {N + 2}, column 3"):
            follow(lines, learner, ReadOptions(), NEVER)
        assert lines.position.offset == len(TEXT)
    assert learner.progress.rows == N


def test_labels_and_losses(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_bytes(b"1 1:1\n1 2:1\n")
    learner = online()
    learnt(path, learner)  # one class so far
    path.write_bytes(b"-1 1:1\n1 2:1\n")
    learnt(path, learner)
    assert learner.model({}).classes == (-1.0, 1.0)
    path.write_bytes(b"0 1:1\n")
    with pytest.raises(DataError, match=r"label 0 is not one of two classes \(-1 and 1\)"):
        learnt(path, learner)
    path.write_bytes(b"3.5 1:1\n1.5 2:1\n")
    squared = OnlineLinear(losses.named("squared"), rules.named("sgd"), 0.1)
    learnt(path, squared)
    assert squared.model({}).classes is None
    steep = OnlineLinear(losses.named("squared"), rules.named("sgd"), 1e30)
    path.write_bytes(b"3.5 1:1e10\n1.5 1:1e10\n" * 50)
    with pytest.raises(DivergedError, match="smaller step"):
        learnt(path, steep)
    with pytest.raises(ParameterError, match="sgd, momentum"):
        OnlineLinear(losses.named("hinge"), rules.SDCA(), 0.1)


def test_a_pipe_and_what_is_told(tmp_path: Path) -> None:
    pipe, told = tmp_path / "pipe", list[Progress]()
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(TEXT.rstrip(b"\n"),))
    writer.start()
    learner = online()
    with FollowedLines(str(pipe)) as lines:
        ended = follow(lines, learner, ReadOptions(), NEVER, tell=told.append)
    writer.join()
    assert (ended.reason, learner.progress.rows, told[-1].rows) == ("end of the stream", N, N)
    assert told[-1].loss == pytest.approx(adagrad_reference(0.3)[2], rel=1e-4)


def test_a_pipe_without_a_writer_is_waited_for_no_longer_than_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert main(["train", "--follow", str(tmp_path / "pipe"), "--seconds", "0.1"]) == 1
    assert "no program has written to this pipe within 0.1 seconds" in capsys.readouterr().err


def run(*arguments: object) -> int:
    return main(["train", "--follow", *map(str, arguments), "--step", "0.3"])


def test_the_command_is_ended_and_goes_on(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """SIGTERM ends it with the model, and --resume goes on at the next byte, to the bits of a single run."""
    path, points, out = tmp_path / "a.svm", tmp_path / "points", tmp_path / "model"
    half = TEXT.index(b"\n", len(TEXT) // 2) + 1
    path.write_bytes(TEXT[: half + 10])  # the next line has begun
    command = [sys.executable, "-m", "hogwild", "train", "--follow", path, "--step", "0.3", "--out", out]
    process = subprocess.Popen(
        [*command, "--checkpoint", points], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    rows = TEXT[:half].count(b"\n")
    for line in process.stderr:
        if re.match(rf"\s+{rows}\s", line):
            break
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
    process.stderr.close()
    assert hogwild.load(out).training["rows"] == rows
    path.write_bytes(TEXT)
    assert run(path, "--resume", points, "--out", out, "--seconds", 0, "--json") == 0
    record = json.loads(capfd.readouterr().out)
    assert (record["rows"], record["offset"], record["stop_reason"]) == (N, len(TEXT), "seconds")
    single = online()
    learnt(path, single)
    np.testing.assert_array_equal(hogwild.load(out).weights, single.model({}).weights)
    assert record["progressive_loss"] == pytest.approx(single.progress.mean)
    assert main(["predict", str(out), str(path)]) == 0

    path.write_bytes(TEXT[:half])
    assert run(path, "--resume", points, "--seconds", 0) == 1
    assert "was cut to" in capfd.readouterr().err
    path.write_bytes(TEXT)
    assert run(path, "--resume", points, "--seconds", 0, "--l2", "0.1") == 1
    assert "belongs to a run with l2 0.0" in capfd.readouterr().err


def test_checkpoints_are_checked(tmp_path: Path) -> None:
    learner = online()
    (tmp_path / "a.svm").write_bytes(TEXT)
    learnt(tmp_path / "a.svm", learner)
    arrays, record = learner.saved()
    for damage in ({"rows": "many"}, {"features": 7}, {"negative": "x"}, {"step": 0.1}):
        with pytest.raises(CheckpointError):
            online().restore(arrays, {**record, **damage})
    again = online()
    again.restore(arrays, record)
    np.testing.assert_array_equal(again.model({}).weights, learner.model({}).weights)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--epochs", "3"], "--epochs does not go with --follow"),
        (["--strategy", "hogwild"], "--strategy does not go with --follow"),
        (["--problem", "fm"], "--follow is for --problem linear"),
        (["--step", "auto"], "--step is a positive number"),
        (["--seconds", "-1"], "--seconds is a number of at least 0"),
        (["--seconds", "nan"], "--seconds is a number of at least 0"),
        (["--l2", "auto"], "--l2 is a number"),
    ],
)
def test_options_that_have_no_meaning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    (tmp_path / "a.svm").write_bytes(TEXT)
    assert main(["train", "--follow", str(tmp_path / "a.svm"), *options]) == 2
    assert message in capsys.readouterr().err
