"""Help and completion start fast: neither imports a command that does not run, and no command imports the compiler."""

import subprocess
import sys

import pytest

from hogwild.cli import COMMANDS, load

HEAVY = ("numba", "llvmlite", "scipy", "sklearn", "torch", "pyarrow", "ray")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_their_docstrings_say(name):
    assert load(name).help.split("\n\n")[0] == COMMANDS[name]


@pytest.mark.parametrize(
    ("arguments", "kept_out"),
    [
        (["--help"], (*HEAVY, "numpy", "hogwild.cli.train", "hogwild.cli.predict")),
        (["train", "--help"], HEAVY),
    ],
)
def test_help_imports_little(arguments, kept_out):
    program = f"""
import sys
from hogwild.cli import main
code = main({arguments!r})
found = [name for name in {kept_out!r} if sys.modules.get(name)]
sys.exit(f"imported: {{found}}" if found else code)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "Usage" in run.stdout
