"""Estimators with the interface of scikit-learn's SGD estimators, trained by several workers.

Each is imported when it is first used: a classifier needs neither recommenders nor factorisation machines.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hogwild.estimators.classifier import HogwildClassifier as HogwildClassifier
    from hogwild.estimators.factorisation_machine import HogwildFMClassifier as HogwildFMClassifier
    from hogwild.estimators.factorisation_machine import HogwildFMRegressor as HogwildFMRegressor
    from hogwild.estimators.one_class import HogwildOneClassSVM as HogwildOneClassSVM
    from hogwild.estimators.recommender import HogwildRecommender as HogwildRecommender
    from hogwild.estimators.regressor import HogwildRegressor as HogwildRegressor

_HOMES = {
    "HogwildClassifier": "hogwild.estimators.classifier",
    "HogwildFMClassifier": "hogwild.estimators.factorisation_machine",
    "HogwildFMRegressor": "hogwild.estimators.factorisation_machine",
    "HogwildOneClassSVM": "hogwild.estimators.one_class",
    "HogwildRecommender": "hogwild.estimators.recommender",
    "HogwildRegressor": "hogwild.estimators.regressor",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hogwild.estimators' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
