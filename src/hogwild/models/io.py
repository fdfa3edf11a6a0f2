"""Model files: each says of which kind it is, and one function loads them all.

A new kind is a module with a function ``from_file(arrays, record)`` and one line in ``KINDS``. What it returns
can ``save(path)`` itself with that kind in its record, and ``answer(path, proba=..., **reading)`` a file with
:class:`hogwild.models.answers.Predictions`; it has a field ``reading``, a mapping that says how its training file was
read.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from hogwild import array_file
from hogwild.errors import ModelError

FORMAT = 1  # of the files of all kinds
KINDS = {
    "linear": "hogwild.models.linear",
    "fm": "hogwild.models.factorisation_machine",
    "ffm": "hogwild.models.factorisation_machine",
    "ratings": "hogwild.models.ratings",
    "sparse-mlp": "hogwild.models.sparse_mlp",
    "graph-cut": "hogwild.models.graph_cut",
}


def load(path: str | Path) -> Any:
    """Read a model back, of whatever kind it is. No code in the file is run, because there is none."""
    arrays, record = array_file.load(path, ModelError)
    home = KINDS.get(str(record.get("kind")))
    if home is None:
        raise ModelError(f"{path}: this is no model but a {record.get('kind') or 'file of another kind'}.")
    if record.get("format") != FORMAT:
        raise ModelError(
            f"{path}: written in format {record.get('format')}; this version reads {FORMAT}. Upgrade hogwild."
        )
    try:
        return importlib.import_module(home).from_file(arrays, record)
    except (KeyError, TypeError, ValueError, AttributeError) as reason:
        raise ModelError(f"{path}: the model is incomplete or inconsistent ({reason}).") from None
