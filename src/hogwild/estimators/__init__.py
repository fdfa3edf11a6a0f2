"""The scikit-learn face: estimators with the parameters of ``SGDClassifier`` and its kin, on every core."""

from hogwild.estimators.classifier import HogwildClassifier
from hogwild.estimators.factorisation_machine import HogwildFMClassifier, HogwildFMRegressor
from hogwild.estimators.one_class import HogwildOneClassSVM
from hogwild.estimators.recommender import HogwildRecommender
from hogwild.estimators.regressor import HogwildRegressor

__all__ = [
    "HogwildClassifier",
    "HogwildFMClassifier",
    "HogwildFMRegressor",
    "HogwildOneClassSVM",
    "HogwildRecommender",
    "HogwildRegressor",
]
