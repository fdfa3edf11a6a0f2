"""Model files: each contains its kind, and one function loads all kinds.

A new kind is a module with a function ``from_file(arrays, record)``, and one line in ``KINDS``. The model that this
function returns has a method ``save(path)``, which writes the kind to the record. Its method
``answer(path, proba=..., **reading)`` returns :class:`hogwild.models.predictions.Predictions` for a file. Its field
``reading`` is a mapping with the options with which the training file was read.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from hogwild import array_file
from hogwild.errors import ModelError
from hogwild.models.record_checks import check_record

FORMAT = 1  # Format version of the files of all kinds.
KINDS = {
    "linear": "hogwild.models.linear",
    "fm": "hogwild.models.factorisation_machine",
    "ffm": "hogwild.models.factorisation_machine",
    "ratings": "hogwild.models.ratings",
    "sparse-mlp": "hogwild.models.sparse_mlp",
    "graph-cut": "hogwild.models.graph_cut",
}


def load(path: str | Path, net: Any = None) -> Any:
    """Read a model of any kind from its file. The file contains no code, so loading runs none.

    Parameters
    ----------
    path : str or Path
        File that a model's ``save`` has written.
    net : torch.nn.Module, optional
        Network that receives the weights of a file that a run of a ``Module`` has written. Such a file has the weights
        alone, and not the code of the network.

    Returns
    -------
    model
        Model of the kind that was saved, such as ``hogwild.models.linear.LinearModel``.

    Raises
    ------
    ModelError
        If the file is no model, has another format, or is incomplete or inconsistent, or if it has the weights of a
        network and ``net`` is left out.
    """
    array_file.check_kind(path, ModelError)
    weights_of = _network(path)
    if net is not None:
        from hogwild.models.module import ModuleModel, load_weights  # which need PyTorch

        load_weights(net, path)
        return ModuleModel(net)
    if weights_of is not None:
        raise ModelError(
            f"{path}: these are the weights of a network ({weights_of}), without its code. Make the network in Python, "
            "and give it: hogwild.load(path, net)."
        )
    arrays, record = array_file.load(path, ModelError)
    home = KINDS.get(str(record.get("kind")))
    if home is None:
        raise ModelError(f"{path}: this is no model but a {record.get('kind') or 'file of another kind'}.")
    if record.get("format") != FORMAT:
        raise ModelError(
            f"{path}: written in format {record.get('format')}; this version reads {FORMAT}. Upgrade hogwild."
        )
    try:
        check_record(record, arrays)
        return importlib.import_module(home).from_file(arrays, record)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RuntimeError) as reason:
        raise ModelError(f"{path}: the model is incomplete or inconsistent ({reason}).") from None


def _network(path: str | Path) -> str | None:
    """Return the class of the network whose weights a file has; None if it is no such file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
        record = json.loads(metadata.get(array_file.RECORD, "{}"))
    except (OSError, SafetensorError, ValueError, RecursionError):
        return None
    # Files of other kinds have a checksum instead.
    return str(record.get("net", "torch.nn.Module")) if metadata.get("format") == "pt" else None
