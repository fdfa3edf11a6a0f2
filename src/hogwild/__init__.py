"""Stochastic gradient descent with many workers that do not wait for each other.

Entry point::

    run = minimise(problem, rule, schedule, strategy, runtime, budget)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hogwild.environment import check_environment

if TYPE_CHECKING:
    from hogwild.data.sampling import LabelSkew as LabelSkew
    from hogwild.data.sampling import Replacement as Replacement
    from hogwild.data.sampling import SizeSkew as SizeSkew
    from hogwild.data.sampling import Split as Split
    from hogwild.data.sampling import Weighted as Weighted
    from hogwild.data.sampling import WeightedRandom as WeightedRandom
    from hogwild.data.sampling import Whole as Whole
    from hogwild.data.tfrecord_writer import RecordWriter as RecordWriter
    from hogwild.estimators import HogwildClassifier as HogwildClassifier
    from hogwild.estimators import HogwildFMClassifier as HogwildFMClassifier
    from hogwild.estimators import HogwildFMRegressor as HogwildFMRegressor
    from hogwild.estimators import HogwildOneClassSVM as HogwildOneClassSVM
    from hogwild.estimators import HogwildRecommender as HogwildRecommender
    from hogwild.estimators import HogwildRegressor as HogwildRegressor
    from hogwild.iterate_average import EMA as EMA
    from hogwild.models import load as load
    from hogwild.models.module import load_weights as load_weights
    from hogwild.nn.csr_dataset import CSRDataset as CSRDataset
    from hogwild.nn.cuda_graph_step import CUDAGraphStep as CUDAGraphStep
    from hogwild.nn.gradient_clipping import ClipNorm as ClipNorm
    from hogwild.nn.gradient_clipping import ClipValue as ClipValue
    from hogwild.nn.lr_scheduler import TorchSchedule as TorchSchedule
    from hogwild.nn.record_loader import RecordLoader as RecordLoader
    from hogwild.nn.sparse_mlp import SparseMLP as SparseMLP
    from hogwild.nn.sparse_mlp import SparseTable as SparseTable
    from hogwild.nn.step_profile import StepProfile as StepProfile
    from hogwild.problems.factorisation_machine import FactorisationMachine as FactorisationMachine
    from hogwild.problems.field_aware_fm import FieldAwareFactorisationMachine as FieldAwareFactorisationMachine
    from hogwild.problems.graph_cut import GraphCut as GraphCut
    from hogwild.problems.linear import Linear as Linear
    from hogwild.problems.matrix_completion import MatrixCompletion as MatrixCompletion
    from hogwild.problems.module import Module as Module
    from hogwild.rules import FTRL as FTRL
    from hogwild.rules import SDCA as SDCA
    from hogwild.rules import SGD as SGD
    from hogwild.rules import AdaGrad as AdaGrad
    from hogwild.rules import Adam as Adam
    from hogwild.rules import Momentum as Momentum
    from hogwild.rules import PassiveAggressive as PassiveAggressive
    from hogwild.rules import Sequential as Sequential
    from hogwild.run import Run as Run
    from hogwild.run import WarmStart as WarmStart
    from hogwild.runtimes import Cuda as Cuda
    from hogwild.runtimes import Local as Local
    from hogwild.runtimes import Processes as Processes
    from hogwild.runtimes import Ray as Ray
    from hogwild.runtimes import Simulator as Simulator
    from hogwild.runtimes import Threads as Threads
    from hogwild.runtimes.messaging.injected_faults import Crash as Crash
    from hogwild.runtimes.messaging.injected_faults import Crashes as Crashes
    from hogwild.runtimes.messaging.injected_faults import Link as Link
    from hogwild.runtimes.processes.script.shared import shared as shared
    from hogwild.schedules import Adaptive as Adaptive
    from hogwild.schedules import Backoff as Backoff
    from hogwild.schedules import Constant as Constant
    from hogwild.schedules import Cooldown as Cooldown
    from hogwild.schedules import Cosine as Cosine
    from hogwild.schedules import InverseScaling as InverseScaling
    from hogwild.schedules import InverseTime as InverseTime
    from hogwild.schedules import LinearScaling as LinearScaling
    from hogwild.schedules import Optimal as Optimal
    from hogwild.schedules import Steps as Steps
    from hogwild.schedules import Warmup as Warmup
    from hogwild.stopping import Budget as Budget
    from hogwild.strategies import AllToAll as AllToAll
    from hogwild.strategies import Averaging as Averaging
    from hogwild.strategies import DiLoCo as DiLoCo
    from hogwild.strategies import ElasticAveraging as ElasticAveraging
    from hogwild.strategies import Gossip as Gossip
    from hogwild.strategies import Hogwild as Hogwild
    from hogwild.strategies import LargeMinibatch as LargeMinibatch
    from hogwild.strategies import LocalSGD as LocalSGD
    from hogwild.strategies import Locked as Locked
    from hogwild.strategies import ParameterServer as ParameterServer
    from hogwild.strategies import RoundRobin as RoundRobin
    from hogwild.strategies import Serial as Serial
    from hogwild.strategies import Synchronous as Synchronous
    from hogwild.strategies.delay_correction import DelayAdaptive as DelayAdaptive
    from hogwild.strategies.delay_correction import DelayCompensation as DelayCompensation
    from hogwild.training.checkpoints import Checkpoints as Checkpoints
    from hogwild.training.minimise import minimise as minimise

    __version__: str

# Public names of each module. ``__getattr__`` imports a module when one of its names is first used.
_HOMES = {
    "hogwild.training.minimise": ("minimise",),
    "hogwild.training.checkpoints": ("Checkpoints",),
    "hogwild.runtimes.processes.script.shared": ("shared",),
    "hogwild.iterate_average": ("EMA",),
    "hogwild.run": ("Run", "WarmStart"),
    "hogwild.stopping": ("Budget",),
    "hogwild.problems.graph_cut": ("GraphCut",),
    "hogwild.problems.linear": ("Linear",),
    "hogwild.problems.factorisation_machine": ("FactorisationMachine",),
    "hogwild.problems.field_aware_fm": ("FieldAwareFactorisationMachine",),
    "hogwild.problems.matrix_completion": ("MatrixCompletion",),
    "hogwild.models": ("load",),
    "hogwild.problems.module": ("Module",),
    "hogwild.models.module": ("load_weights",),
    "hogwild.nn.cuda_graph_step": ("CUDAGraphStep",),
    "hogwild.nn.gradient_clipping": ("ClipNorm", "ClipValue"),
    "hogwild.nn.lr_scheduler": ("TorchSchedule",),
    "hogwild.nn.record_loader": ("RecordLoader",),
    "hogwild.nn.sparse_mlp": ("SparseMLP", "SparseTable"),
    "hogwild.nn.csr_dataset": ("CSRDataset",),
    "hogwild.nn.step_profile": ("StepProfile",),
    "hogwild.data.tfrecord_writer": ("RecordWriter",),
    "hogwild.data.sampling": ("Split", "Replacement", "Weighted", "WeightedRandom", "Whole", "LabelSkew", "SizeSkew"),
    "hogwild.rules": ("SGD", "Momentum", "AdaGrad", "FTRL", "Adam", "SDCA", "PassiveAggressive", "Sequential"),
    "hogwild.schedules": (
        "Constant", "InverseTime", "InverseScaling", "Optimal", "Backoff", "Steps", "Cosine", "Cooldown", "Adaptive",
        "Warmup", "LinearScaling",
    ),
    "hogwild.strategies": (
        "Serial", "Hogwild", "Locked", "RoundRobin", "Averaging", "Synchronous", "LargeMinibatch", "ParameterServer",
        "LocalSGD", "DiLoCo", "ElasticAveraging", "AllToAll", "Gossip",
    ),
    "hogwild.strategies.delay_correction": ("DelayAdaptive", "DelayCompensation"),
    "hogwild.runtimes": ("Threads", "Processes", "Cuda", "Simulator", "Local", "Ray"),
    "hogwild.runtimes.messaging.injected_faults": ("Crash", "Crashes", "Link"),
    "hogwild.estimators": (
        "HogwildClassifier", "HogwildRegressor", "HogwildOneClassSVM", "HogwildFMClassifier", "HogwildFMRegressor",
        "HogwildRecommender",
    ),
}  # fmt: skip
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]


_MODULES = (  # modules of the public interface, imported when they are first used
    "callbacks", "data", "delays", "errors", "landscape", "losses", "rules", "schedules", "strategies", "topologies",
)  # fmt: skip
_NEEDS_TORCH = (  # public names whose modules need PyTorch, which is optional
    "CUDAGraphStep", "ClipNorm", "ClipValue", "Module", "RecordLoader", "SparseMLP", "CSRDataset", "SparseTable",
    "StepProfile", "TorchSchedule", "load_weights", "shared",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    check_environment()
    if name in _HOME:
        try:
            return getattr(importlib.import_module(_HOME[name]), name)
        except ModuleNotFoundError as missing:
            if missing.name != "torch" or name not in _NEEDS_TORCH:
                raise
            from hogwild.errors import MissingExtraError

            raise MissingExtraError(f"hogwild.{name}", "torch", "torch") from None
    if name in _MODULES:
        return importlib.import_module(f"hogwild.{name}")
    raise AttributeError(f"module 'hogwild' has no attribute {name!r}")


def _version() -> str:
    """Return the version of the installed package, which comes from a tag; a mere folder of files has none."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("hogwild")
    except PackageNotFoundError:
        return "0+unknown"


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
