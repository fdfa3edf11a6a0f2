"""Inputs that are no files, outputs that would replace what is read or written, and a compiler that cannot start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hogwild
from hogwild import Linear, minimise
from hogwild.cli import main
from hogwild.errors import ModelError, ParameterError

EMPTY = r"path .*is empty"
TRAIN = ("--epochs", "1", "--workers", "1", "--step", "0.1")


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("given")
    (folder / "a.svm").write_text("1 1:1\n-1 2:1\n" * 20)
    (folder / "edges").write_text("0 1\n1 2\n")
    (folder / "seeds").write_text("0 0\n2 1\n")
    (folder / "c.toml").write_text('data = "a.svm"\n')
    words = ["train", folder / "a.svm", *TRAIN, "--out", folder / "model", "--log", folder / "log.jsonl"]
    assert main([str(word) for word in words]) == 0
    return folder


@pytest.mark.parametrize(("command", "told"), [
    (("predict", "/dev/zero", "a.svm"), "/dev/zero: this is a device, not a file."),
    (("predict", "pipe", "a.svm"), "pipe: this is a pipe, not a file."),
    (("predict", ".", "a.svm"), "this is a folder, not a file."),
    (("train", "a.svm", "--config", "/dev/zero"), "--config /dev/zero: this is a device, not a file."),
    (("train", "a.svm", "--config", "pipe"), "pipe: this is a pipe, not a file."),
], ids=" ".join)  # fmt: skip
def test_a_model_or_a_configuration_is_a_file(
    command: tuple[str, ...],
    told: str,
    given: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An endless device was read until memory was full, and a pipe that nobody writes to was waited for."""
    monkeypatch.chdir(given)
    if not Path("pipe").exists():
        os.mkfifo("pipe")
    assert main([*command]) in (1, 2)
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("command", [
    ("train", "a.svm", *TRAIN, "--out", "a.svm"),
    ("train", "a.svm", *TRAIN, "--out", "link"),
    ("train", "a.svm", *TRAIN, "--log", "a.svm"),
    ("train", "log.jsonl", "--test", "a.svm", *TRAIN, "--out", "a.svm"),
    ("train", "a.svm", *TRAIN, "--save-config", "a.svm"),
    ("train", "a.svm", "--follow", "--seconds", "1", "--out", "a.svm"),
    ("predict", "model", "a.svm", "--out", "a.svm"),
    ("predict", "model", "a.svm", "--out", "model"),
    ("report", "log.jsonl", "--out", "log.jsonl"),
    ("train", "edges", "--problem", "graph-cut", "--seeds", "seeds", "--epochs", "1", "--out", "seeds"),
    ("train", "--config", "c.toml", *TRAIN, "--out", "c.toml"),
    ("train", "--config", "c.toml", *TRAIN, "--save-config", "c.toml"),
    ("train", "--config", "c.toml", "--follow", "--seconds", "1", "--out", "c.toml"),
    ("train", "a.svm", *TRAIN, "--strategy", "gossip", "--runtime", "local", "--record", "a.svm"),
], ids=" ".join)  # fmt: skip
def test_no_output_replaces_an_input(
    command: tuple[str, ...], given: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(given)
    if not Path("link").exists():
        Path("link").symlink_to("a.svm")
    before = {path.name: path.read_bytes() for path in given.iterdir() if path.is_file()}
    assert main([*command]) == 2
    assert "this file is read, and would be lost" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in given.iterdir() if path.is_file()} == before


def test_stdout_by_another_name_has_its_exit_code(given: Path) -> None:
    """The reader of stdout has left: 141, whatever stdout is called."""
    reader, writer = os.pipe()
    os.close(reader)
    words = ["predict", given / "model", given / "a.svm", "--out", "/dev/stdout"]
    ended = subprocess.run(
        [sys.executable, "-m", "hogwild", *words], stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_a_pipe_whose_reader_has_left_is_told(given: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    words = ["predict", given / "model", given / "many.svm", "--out", pipe]
    (given / "many.svm").write_text("1 1:1\n-1 2:1\n" * 50_000)
    with subprocess.Popen([sys.executable, "-m", "hogwild", *words], stderr=subprocess.PIPE) as process:
        os.close(os.open(pipe, os.O_RDONLY))
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (1, f"error: {pipe}: Broken pipe\n".encode())


def test_two_outputs_have_two_names(
    given: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(given)
    assert main(["train", "a.svm", *TRAIN, "--out", "same", "--log", "./same"]) == 2
    assert "--out and --log have the same name: same" in capsys.readouterr().err
    assert not Path("same").exists()
    assert main(["train", "a.svm", *TRAIN, "--out", "/dev/null", "--log", "/dev/null"]) == 0


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("NUMBA_DISABLE_JIT", "1"),
        ("NUMBA_NUM_THREADS", "0"),
        ("NUMBA_CPU_FEATURES", "x"),
        ("SOURCE_DATE_EPOCH", "x"),
        ("SOURCE_DATE_EPOCH", "9" * 20),
    ],
)
def test_an_environment_without_the_compiler_is_told(variable: str, value: str, given: Path) -> None:
    command = [sys.executable, "-m", "hogwild", "train", str(given / "a.svm"), *TRAIN]
    ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, variable: value}, timeout=60)
    assert ended.returncode == 2
    assert variable[:6] in ended.stderr
    assert "should not happen" not in ended.stderr


def test_a_folder_that_was_removed_is_told(given: Path, tmp_path: Path) -> None:
    command = f"cd {tmp_path} && mkdir gone && cd gone && rmdir ../gone && exec {sys.executable} -m hogwild"
    ended = subprocess.run(
        ["sh", "-c", f"{command} train {given / 'a.svm'} --out x.model"], capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 1
    assert ended.stderr == "error: The current folder does not exist any more. Change to another one with cd.\n"


def test_an_environment_in_which_numpy_does_not_start_is_told_in_python() -> None:
    command = [sys.executable, "-c", "import hogwild; hogwild.HogwildClassifier"]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "x"}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert "hogwild.errors.ParameterError: The environment variable SOURCE_DATE_EPOCH" in ended.stderr


@pytest.mark.parametrize("words", [
    ("inspect", ""), ("train", ""), ("train", "a.svm", "--test", ""), ("train", "a.svm", "--out", ""),
    ("train", "a.svm", "--log="), ("train", "a.svm", "--checkpoint", ""), ("train", "a.svm", "--resume", ""),
    ("train", "a.svm", "--folder", ""), ("train", "a.svm", "--save-config", ""), ("train", "a.svm", "--config", ""),
    ("train", "a.svm", "--tensorboard", ""), ("train", "a.svm", "--record", ""), ("predict", "", "a.svm"),
    ("predict", "model", ""), ("predict", "model", "a.svm", "--out", ""), ("pack", "", "packed"), ("pack", "a.svm", ""),
    ("pack", "a.svm", "", "packed"), ("generate", "rcv1", ""), ("generate", "rcv1", "b.svm", "--weights", ""),
    ("report", ""), ("report", "log.jsonl", "--out", ""), ("report", "log.jsonl", "--figures", ""),
    ("compare", ""), ("compare", "a.svm", "--out", ""), ("lab", "collisions", "--out", ""),
    ("lab", "paper", "--data", ""),
], ids=" ".join)  # fmt: skip
def test_an_empty_path_is_refused(
    words: tuple[str, ...], given: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python takes it for the working directory, which was read, or filled with checkpoints."""
    monkeypatch.chdir(given)
    before = sorted(path.name for path in given.iterdir())
    assert main([*words]) == 2
    (told,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert "is empty. Name a file or a folder." in told
    assert sorted(path.name for path in given.iterdir()) == before


def test_an_empty_path_is_refused_in_a_configuration_and_in_python(
    given: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(given)
    Path("empty.toml").write_text('out = ""\n')
    assert main(["train", "a.svm", *TRAIN, "--config", "empty.toml"]) == 2
    assert "empty.toml: 'out' is an empty path" in capsys.readouterr().err
    rows = ([[0.0], [1.0]], [0, 1])
    with pytest.raises(ParameterError, match=EMPTY):
        minimise(Linear(rows), budget=1, checkpoint="")
    with pytest.raises(ParameterError, match=EMPTY):
        minimise(Linear(rows), budget=1, folder="")
    with pytest.raises(ParameterError, match=EMPTY):
        hogwild.data.open("")
    with pytest.raises(ModelError, match=EMPTY):
        hogwild.load("")
    with pytest.raises(ParameterError, match=EMPTY):
        minimise(Linear(rows), budget=1).save("")


@pytest.mark.parametrize("words", [
    ("train", "a.svm", *TRAIN, "--out", "http://127.0.0.1/model"), ("pack", "a.svm", "s3://bucket/packed"),
    ("predict", "http://127.0.0.1/model", "a.svm"), ("report", "https://127.0.0.1/log.jsonl"),
    ("generate", "rcv1", "gs://bucket/a.svm", "--rows", "9"),
], ids=" ".join)  # fmt: skip
def test_an_address_is_no_path(
    words: tuple[str, ...], given: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Folders named ``http:`` and ``s3:`` were made."""
    monkeypatch.chdir(given)
    before = sorted(path.name for path in given.rglob("*"))
    assert main([*words]) == 2
    assert "this is an address. Name a file or a folder on this machine." in capsys.readouterr().err
    assert sorted(path.name for path in given.rglob("*")) == before
