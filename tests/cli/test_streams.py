"""Commands whose streams are closed, broken, full, narrow, or without the characters of a message."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hogwild.cli.console import Output

HOGWILD = [sys.executable, "-m", "hogwild"]
LIMIT_SECONDS = 120


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("streams") / "dätä-✓.svm"
    file.write_text("".join(f"{1 if row % 2 else -1} 1:{row % 7} {2 + row % 5}:1\n" for row in range(60)))
    return file


def commands(data: Path) -> dict[str, list[str]]:
    return {
        "help": ["--help"],
        "inspect": ["inspect", str(data)],
        "train": ["train", str(data), "--epochs", "1"],
        "train as JSON": ["train", str(data), "--epochs", "1", "--json"],
        "no file": ["inspect", str(data) + "x"],
        "no file as JSON": ["inspect", str(data) + "x", "--json"],
    }


CODES = {"no file": 1, "no file as JSON": 1}


def shell(words: list[str], redirections: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = ["sh", "-c", f'exec "$@" {redirections}', "sh", *HOGWILD, *words]
    return subprocess.run(command, capture_output=True, timeout=LIMIT_SECONDS, env={**os.environ, **environment})


@pytest.mark.parametrize("name", [*commands(Path())])
@pytest.mark.parametrize("closed", ["stdout", "stderr", "both"])
def test_closed_streams_are_the_null_device(data: Path, name: str, closed: str) -> None:
    redirections = {"stdout": ">&-", "stderr": "2>&-", "both": "<&- >&- 2>&-"}[closed]
    ended = shell(commands(data)[name], redirections)
    assert ended.returncode == CODES.get(name, 0), ended.stderr
    assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize("name", [*commands(Path())])
def test_messages_that_cannot_be_written_are_dropped(data: Path, name: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    for stream in (writer, os.open("/dev/full", os.O_WRONLY)):
        ended = subprocess.run(
            [*HOGWILD, *commands(data)[name]], stdout=subprocess.PIPE, stderr=stream, timeout=LIMIT_SECONDS
        )
        os.close(stream)
        assert ended.returncode == CODES.get(name, 0)
        assert bool(ended.stdout) == (name != "no file")


@pytest.mark.parametrize("name", [*commands(Path())])
def test_the_reader_of_the_output_has_left(data: Path, name: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run([*HOGWILD, *commands(data)[name]], stdout=writer, stderr=subprocess.PIPE, timeout=120)
    os.close(writer)
    assert ended.returncode == CODES.get(name, 141)
    assert b"Traceback" not in ended.stderr
    assert b"has left" not in ended.stderr


def test_the_work_is_done_before_the_reader_is_missed(data: Path, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    words = [*commands(data)["train"], "--out", str(tmp_path / "model")]
    ended = subprocess.run([*HOGWILD, *words], stdout=writer, stderr=subprocess.PIPE, timeout=LIMIT_SECONDS)
    os.close(writer)
    assert ended.returncode == 141
    assert (tmp_path / "model").exists()


@pytest.mark.parametrize("name", [*commands(Path())])
def test_a_full_disk_below_stdout(data: Path, name: str) -> None:
    ended = shell(commands(data)[name], ">/dev/full")
    assert ended.returncode == 1
    assert ended.stderr.count(b"error: ") == 1
    assert name.startswith("no file") or b"error: standard output: No space left on device" in ended.stderr


@pytest.mark.parametrize("name", [*commands(Path())])
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_characters_that_cannot_be_encoded(data: Path, name: str, encoding: str) -> None:
    ended = shell(commands(data)[name], "", PYTHONIOENCODING=encoding)
    assert ended.returncode == CODES.get(name, 0), ended.stderr
    assert b"UnicodeEncodeError" not in ended.stderr
    ended.stdout.decode(encoding)
    if "JSON" in name:
        json.loads(ended.stdout)


@pytest.mark.parametrize("width", ["0", "1", "20", "many"])
@pytest.mark.parametrize("locale", ["C", "POSIX"])
def test_narrow_terminals_without_a_locale(data: Path, width: str, locale: str) -> None:
    plain = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "COLUMNS": width, "TERM": "dumb"}
    ended = shell(["inspect", os.fsencode(data).decode("utf-8")], "", **plain)
    assert ended.returncode == 0, ended.stderr
    assert b"non-zeros" in ended.stdout


def test_no_control_character_of_a_name_reaches_the_terminal(data: Path) -> None:
    """A file's name is text of others: an escape sequence in it could rename the window or clear the screen."""
    file = data.with_name("a\x1b]0;owned\x07\r\x1b[2J\x9b31m.svm")
    file.write_bytes(data.read_bytes())
    for words in (["inspect", str(file)], ["train", str(file) + "\n\x1b[2J"], ["train", str(file), "--epochs", "1"]):
        written = in_a_terminal([*HOGWILD, *words])
        assert b"\x1b]0;" not in written
        assert b"\x1b[2J" not in written
        assert b"\xc2\x9b" not in written
        assert b"owned" in written or words[0] == "train"


def in_a_terminal(command: list[str]) -> bytes:
    """Run a program in a terminal, and return everything that it wrote there."""
    leader, follower = pty.openpty()
    with subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower) as program:
        os.close(follower)
        written, limit = b"", time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < limit:
            if select.select([leader], [], [], 0.1)[0]:
                try:
                    written += os.read(leader, 65536)
                except OSError:  # The program has ended.
                    break
        program.kill()
    os.close(leader)
    return written


def test_a_console_escapes_texts_and_keeps_lines(capsys: pytest.CaptureFixture[str]) -> None:
    Output().show("one\ntwo \x1b[31mred\u202e")
    assert capsys.readouterr().out == "one\ntwo \\x1b[31mred\\u202e\n"
