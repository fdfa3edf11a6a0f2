"""Experiments: each is one file, and one line here. A copy of a file is the start of a user's own experiment."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

from hogwild.errors import ParameterError
from hogwild.lab.experiment import Experiment
from hogwild.registry import lookup

NAMES = (
    "collisions",
    "delays",
    "regularisation",
    "one-pass",
    "schedules",
    "topologies",
    "batch-size",
    "strategies",
    "scale-out",
    "hardware",
    "sparse-networks",
    "paper",
)

COMPARE = "compare"  # the experiment of 'hogwild compare', which is not listed because it needs data


def named(name: str) -> Experiment:
    """Return an experiment by its name, or from a file that ends in ``.py``.

    >>> named("collisions").timed
    True
    """
    if name.endswith(".py"):
        return _from_file(Path(name))
    module = name if name == COMPARE else lookup("experiment", name, {known: known for known in NAMES})
    found: Experiment = importlib.import_module(f"hogwild.lab.experiments.{module.replace('-', '_')}").experiment
    return found


def source(name: str) -> str:
    """Return the text of an experiment's file, for a user to copy and change."""
    module = lookup("experiment", name, {known: known for known in NAMES})
    return (Path(__file__).parent / f"{module.replace('-', '_')}.py").read_text()


def _from_file(path: Path) -> Experiment:
    if not path.is_file():
        raise ParameterError(f"{path}: there is no such file. The experiments that are here: {', '.join(NAMES)}.")
    spec = importlib.util.spec_from_file_location(f"hogwild_lab_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # a dataclass in the file looks up its own module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ParameterError(f"{path}: this cannot be run: {type(error).__name__}: {error}.") from error
    found = getattr(module, "experiment", None)
    if not isinstance(found, Experiment):
        raise ParameterError(f"{path}: there is no 'experiment = Experiment(...)' in it.")
    return found
