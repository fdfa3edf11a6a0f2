"""The frame of the command line: how errors become exit codes, lines and JSON, whatever the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import ModuleType
from typing import Annotated, Any

import pytest
import typer

import hogwild.cli
from hogwild.cli import main
from hogwild.cli.console import Debug, Json, Output
from hogwild.cli.options import reading
from hogwild.errors import DataError, MissingExtraError, ParameterError

ENDINGS: dict[str, tuple[BaseException, int, str]] = {
    "data": (DataError("index -3 is negative", path="ads.svm", line=12), 1, "DataError"),
    "parameter": (ParameterError("no such loss"), 2, "ParameterError"),
    "extra": (MissingExtraError("Reading Parquet", "pyarrow", "parquet"), 1, "MissingExtraError"),
    "file": (FileNotFoundError(2, "No such file or directory", "ads.svm"), 1, "FileNotFoundError"),
    "memory": (MemoryError(), 1, "MemoryError"),
    "ctrl-c": (KeyboardInterrupt(), 130, "KeyboardInterrupt"),
    "bug": (ZeroDivisionError("division by zero"), 1, "ZeroDivisionError"),
    "multiline": (DataError("first\nsecond [bold]line[/bold]"), 1, "DataError"),
}


def fake(how: Annotated[str, typer.Argument()] = "fine", as_json: Json = False, debug: Debug = False) -> None:
    """Ends as it is told.

    Example: hogwild fake data --json
    """
    out = Output(as_json)
    if how in ENDINGS:
        raise ENDINGS[how][0]
    out.note("in passing")
    out.warn("beware")
    out.show("shown [1] :x:")
    out.result({"loss": float("inf"), "rows": 3})
    if how == "broken":
        raise typer.Exit(1)


@pytest.fixture(autouse=True)
def _fake_command(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("hogwild.cli.fake")
    module.fake = fake  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "hogwild.cli.fake", module)
    monkeypatch.setattr(hogwild.cli, "COMMANDS", {**hogwild.cli.COMMANDS, "fake": "Do as a test wants."})


def strict(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("how", ENDINGS)
def test_an_error_is_one_line_and_an_exit_code(how: str, capsys: pytest.CaptureFixture[str]) -> None:
    error, code, kind = ENDINGS[how]
    assert main(["fake", how]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert "Traceback" not in err
    assert kind != "DataError" or str(error) in err


@pytest.mark.parametrize("how", ENDINGS)
def test_with_json_an_error_is_one_object_on_stdout(how: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, code, kind = ENDINGS[how]
    assert main(["fake", how, "--json"]) == code
    out, err = capsys.readouterr()
    record = strict(out)
    assert record["kind"] == kind
    assert record["error"]
    assert record["error"] in err


@pytest.mark.parametrize("how", ["data", "bug", "ctrl-c"])
def test_debug_shows_the_traceback(how: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fake", how, "--debug"]) == ENDINGS[how][1]
    assert "Traceback (most recent call last)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["fake", "--no-such"], "No such option"),
        (["fke"], "Did you mean 'fake'?"),
        (["fake", "one", "two"], "unexpected extra argument"),
        (["pack"], "Missing argument"),
    ],
)
def test_wrong_usage_is_2(words: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert expected in err
    assert "--help" in err
    assert main([*words, "--json"]) == 2
    assert expected in strict(capsys.readouterr().out)["error"]


def test_a_json_after_the_double_dash_is_not_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fake", "--", "data", "--json"]) == 2
    assert capsys.readouterr().out == ""


def test_results_go_to_people_or_to_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fake"]) == 0
    out, err = capsys.readouterr()
    assert out == "shown [1] :x:\n"
    assert err == "in passing\nwarning: beware\n"
    assert main(["fake", "--json"]) == 0
    assert strict(capsys.readouterr().out) == {"loss": None, "rows": 3}


def test_a_command_chooses_its_exit_code() -> None:
    assert main(["fake", "broken"]) == 1


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("hogwild ")
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in hogwild.cli.COMMANDS)
    assert main([]) == 2


@pytest.mark.parametrize("name", hogwild.cli.COMMANDS)
def test_every_command_explains_itself(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--json" in shown
    assert "--debug" in shown
    assert f"hogwild {name}" in shown.split("Example", 1)[1]


def test_reading_options_are_checked() -> None:
    assert reading(base="0").base == 0
    with pytest.raises(ParameterError, match="'base'"):
        reading(base="2")


def test_a_broken_pipe_is_silent_and_commands_load_on_their_own() -> None:
    code = (
        "import sys; from hogwild.cli import main; code = main(['--version']); "
        "assert not any('hogwild.cli.' + n in sys.modules for n in ('inspect', 'pack', 'doctor', 'generate')); "
        "assert 'numba' not in sys.modules; sys.exit(code)"
    )
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run([sys.executable, "-c", code], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert ended.stderr == b""
    assert ended.returncode == 1
