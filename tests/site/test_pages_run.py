"""Every Python block and every command of tutorials, how-to pages and pages for those who come from elsewhere runs."""

from __future__ import annotations

import os
import re
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


PRELUDE = """
import pathlib

import torch
from sklearn.datasets import make_classification
from hogwild.data.generate import write

if not pathlib.Path("test.svm.gz").exists():  # workers run the script from its beginning
    write("rcv1", "train.svm.gz", rows=500)
    write("rcv1", "test.svm.gz", rows=200)
X, y = make_classification(300, 5, random_state=0)
X_train, X_test, y_train, y_test = X[:200], X[200:], y[:200], y[200:]
data = torch.utils.data.TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y))
loader = torch.utils.data.DataLoader(data, batch_size=50)
net = torch.nn.Linear(5, 2)
optimizer, loss_fn = torch.optim.SGD(net.parameters(), lr=0.1), torch.nn.functional.cross_entropy
"""


def test_the_examples_of_the_readme_run(tmp_path):
    (tmp_path / "page.py").write_text(PRELUDE + script((DOCS.parent / "README.md").read_text()))
    done = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-4000:]
    assert (tmp_path / "svm.model").exists()


def test_the_readme_names_files_that_there_are():
    text = (DOCS.parent / "README.md").read_text()
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert len(links) > 20
    assert [link for link in links if not (DOCS.parent / link).exists()] == []
    assert all(command in text for command in ("make demo", "make test"))
