"""Contents of packed folders, and text to pack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np


def svmlight_lines(first: int, count: int, base: int = 1) -> list[str]:
    """Lines of text with a comment and a blank line here and there, which are no rows."""
    random, lines = np.random.default_rng(first), []
    for number in range(first, first + count):
        columns = np.sort(random.choice(60, 5, replace=False)) + base
        lines.append(f"{number % 3} " + " ".join(f"{column}:{random.random():.3f}" for column in columns))
        lines += ["# a comment"] * (number % 50 == 0) + [""] * (number % 70 == 0)
    return lines


def contents(folder: Path) -> dict[str, Any]:
    """All that a packed folder has but the memory it was packed in, and means that are rounded in another order."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".json":
            said = json.loads(path.read_text())
            for each in (said, said.get("meta", {})):
                for name in ("memory", "digest"):
                    each.pop(name, None)
                if isinstance(each.get("labels"), dict):
                    each["labels"]["mean"] = round(each["labels"]["mean"], 12)
            found[str(path.relative_to(folder))] = said
        elif path.is_file():
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found
