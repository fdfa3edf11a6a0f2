"""Shells complete commands, options and files: the script that typer makes is run in bash, and asked as others ask."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hogwild.cli import COMMANDS

PROGRAM = [sys.executable, "-m", "hogwild"]
SOURCE = str(Path(__file__).parents[2] / "src")


def ask(shell: str, words: str) -> str:
    """What the program answers to the script of a shell."""
    asked = {
        "bash": {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": words},
        "fish": {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    variables = {**os.environ, **asked, "_HOGWILD_COMPLETE": f"complete_{shell}"}
    return subprocess.run(PROGRAM, env=variables, capture_output=True, text=True, check=False, timeout=120).stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_names_of_commands(shell):
    found = ask(shell, "hogwild p")
    assert [name for name in COMMANDS if name in found] == ["predict", "pack"]


def test_options_of_a_command():
    assert {"--loss", "--log"} <= set(ask("bash", "hogwild train rows.svm --lo").split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_the_script_in_bash(tmp_path):
    # The variable has typer take the name of the shell, instead of looking for the one that has started the tests.
    named = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    asked = [*PROGRAM, "--show-completion", "bash"]
    shown = subprocess.run(asked, env=named, capture_output=True, text=True, check=True, timeout=120).stdout
    # A program of this name, wherever the package is installed.
    program = tmp_path / "hogwild"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{SOURCE}:$PYTHONPATH" exec "{sys.executable}" -m hogwild "$@"\n')
    program.chmod(0o755)
    press_tab = 'COMP_WORDS=(hogwild ins); COMP_CWORD=1; _hogwild_completion hogwild; echo "${COMPREPLY[@]}"'
    variables = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    found = subprocess.run(
        ["bash", "-c", f"{shown}\n{press_tab}"], env=variables, capture_output=True, text=True, check=True, timeout=120
    )
    assert found.stdout == "inspect\n"
