"""The manual page has every command and option, and troff reads it without a warning."""

import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

from hogwild.cli import COMMANDS, load

TOOL = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "man"))


def test_every_command_and_option_is_there():
    page = TOOL["page"]().replace("\\-", "-")
    for name in COMMANDS:
        assert f"hogwild {name}" in page
        for option in load(name).params:
            assert all(spelt in page for spelt in option.opts if spelt.startswith("-")), option.name


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff")
def test_troff_reads_it(tmp_path):
    (tmp_path / "hogwild.1").write_text(TOOL["page"]())
    read = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", tmp_path / "hogwild.1"], capture_output=True, text=True, check=True
    )
    assert read.stderr == ""
    assert "hogwild predict" in re.sub(".\\x08", "", read.stdout)


def test_what_troff_would_take_for_a_command_is_escaped():
    assert TOOL["_text"](".TH 'x' \\fB a-b") == "\\&.TH 'x' \\efB a\\-b"
