"""Every Python block and every command of tutorials, how-to pages and pages for those who come from elsewhere runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from page_script import runs, script

DOCS = Path(__file__).parents[2] / "docs"
FOLDERS = ("tutorials", "howto", "coming_from", "explanation")
PAGES = sorted(page for folder in FOLDERS for page in (DOCS / folder).glob("*.md") if page.stem != "index")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if runs(page)], ids=lambda page: f"{page.parent.name}/{page.stem}"
)
def test_the_blocks_of_a_page_run(page, tmp_path):
    (tmp_path / "page.py").write_text(script(page.read_text()))
    programs = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "MPLBACKEND": "Agg",
        "PYTHONWARNINGS": "error::FutureWarning",
    }
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, f"{page}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


@pytest.mark.parametrize("folder", ["tutorials", "howto", "coming_from"])
def test_most_pages_have_something_to_run(folder):
    pages = [page for page in PAGES if page.parent.name == folder]
    assert len(pages) >= 3
    assert sum(runs(page) for page in pages) >= 0.8 * len(pages)
