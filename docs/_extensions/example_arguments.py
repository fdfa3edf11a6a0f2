"""Arguments with which examples run while the site is built: pictures, and sizes that take some seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

DRAW = "--draw"
ARGUMENTS: dict[str, list[str]] = {
    "count_conflicts.py": [DRAW],
    "criteo.py": ["20000"],
    "demo.py": [DRAW],
    "digits_cnn.py": ["2"],
    "digits_mlp.py": [DRAW],
    "fashion_mnist.py": ["", "2"],
    "films.py": [DRAW],
    "interactions.py": [DRAW],
    "own_loss.py": [DRAW],
    "segmentation.py": [DRAW],
    "sparse_clicks.py": ["20000"],
    "staleness.py": [DRAW],
    "text_pipeline.py": ["6000"],
}


def arguments(_configuration: dict[str, Any], script: dict[str, Any]) -> list[str]:
    """Return the command-line arguments of an example, and let it know its file, which its workers run again."""
    script["example_globals"]["__file__"] = script["src_file"]
    return ARGUMENTS.get(Path(script["src_file"]).name, [])
