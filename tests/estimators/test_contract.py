"""scikit-learn's own checks of what an estimator must do, on each class with each family of losses."""

import os

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from hogwild import HogwildClassifier, HogwildOneClassSVM, HogwildRegressor

SHORT = {"max_iter": 50, "random_state": 0}
GENTLY = {"learning_rate": "adaptive", "eta0": 0.01}  # with "optimal" scikit-learn's own class scores too low

FAMILIES = [
    HogwildClassifier(**SHORT),
    HogwildClassifier(loss="log_loss", **SHORT),
    HogwildClassifier(loss="squared_error", **SHORT),
    HogwildRegressor(**SHORT),
    HogwildRegressor(loss="epsilon_insensitive", **SHORT),
    HogwildOneClassSVM(**SHORT),
]
OTHERS = [
    HogwildClassifier(loss="modified_huber", alpha=0.01, **SHORT),  # few scores beyond 1, where probabilities tie
    HogwildClassifier(loss="squared_hinge", **SHORT),
    HogwildClassifier(loss="perceptron", **SHORT),
    HogwildClassifier(loss="huber", **GENTLY, **SHORT),
    HogwildClassifier(loss="epsilon_insensitive", **GENTLY, **SHORT),
    HogwildClassifier(loss="squared_epsilon_insensitive", **SHORT),
    HogwildClassifier(loss="softmax", **SHORT),
    HogwildRegressor(loss="huber", **SHORT),
    HogwildRegressor(loss="squared_epsilon_insensitive", **SHORT),
    HogwildRegressor(loss="quantile", **SHORT),
]

WEIGHTS = "a weight scales the step of one visit, a repeated row is visited twice, as in scikit-learn's SGD classes"


def expected_failures(estimator):
    return {
        "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
        "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
    }


@parametrize_with_checks(FAMILIES, expected_failed_checks=expected_failures)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::FutureWarning")
def test_the_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("HOGWILD_EVERY_LOSS"), reason="takes minutes: set HOGWILD_EVERY_LOSS=1")
@parametrize_with_checks(OTHERS, expected_failed_checks=expected_failures)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::FutureWarning")
def test_the_contract_with_every_loss(estimator, check):
    check(estimator)
