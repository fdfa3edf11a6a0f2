"""Estimators with the interface of scikit-learn's SGD estimators, trained by several workers.

Each is imported when it is first used: a classifier needs neither recommenders nor factorisation machines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hogwild.lazy import late_names

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
__getattr__, __dir__ = late_names(__name__, _HOMES)
