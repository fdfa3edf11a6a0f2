"""Estimators with the interface of scikit-learn's SGD estimators, trained by several workers."""

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
