"""scikit-learn's own checks of what an estimator must do, on each class with each family of losses."""

import pytest
from sklearn.linear_model import SGDClassifier
from sklearn.utils.estimator_checks import check_class_weight_classifiers, parametrize_with_checks

import references
from hogwild import HogwildClassifier, HogwildOneClassSVM, HogwildRegressor

SHORT = {"max_iter": 50, "random_state": 0}
GENTLY = {"learning_rate": "adaptive", "eta0": 0.01}  # with "optimal" scikit-learn's own class scores too low

# Each class with one worker and with two, and one that tells chances.
FAMILIES = [
    HogwildClassifier(**SHORT),
    HogwildClassifier(n_jobs=2, strategy="hogwild", **SHORT),
    HogwildClassifier(loss="log_loss", **SHORT),
    HogwildRegressor(**SHORT),
    HogwildRegressor(n_jobs=2, strategy="hogwild", **SHORT),
    HogwildOneClassSVM(**SHORT),
    HogwildOneClassSVM(n_jobs=2, strategy="hogwild", **SHORT),
]
# These differ in their loss alone, each with loops of its own to compile for every type of array: make conformance.
# Every day they are fitted in test_agreement.py, next to scikit-learn's; those that only we have, in test_behaviour.py.
OTHER_LOSSES = [
    HogwildClassifier(loss="modified_huber", alpha=0.01, **SHORT),  # few scores beyond 1, where probabilities tie
    HogwildClassifier(loss="squared_hinge", **SHORT),
    HogwildClassifier(loss="perceptron", **SHORT),
    HogwildClassifier(loss="squared_error", **GENTLY, **SHORT),
    HogwildClassifier(loss="huber", **GENTLY, **SHORT),
    HogwildClassifier(loss="epsilon_insensitive", **GENTLY, **SHORT),
    HogwildClassifier(loss="squared_epsilon_insensitive", **GENTLY, **SHORT),
    HogwildClassifier(loss="softmax", **SHORT),
    HogwildRegressor(loss="huber", **SHORT),
    HogwildRegressor(loss="epsilon_insensitive", **SHORT),
    HogwildRegressor(loss="squared_epsilon_insensitive", **SHORT),
    HogwildRegressor(loss="quantile", **SHORT),
    HogwildRegressor(loss="poisson", **SHORT),
]

WEIGHTS = "a weight scales the step of one visit, a repeated row is visited twice, as in scikit-learn's SGD classes"
STEEP = "with a class weight of 1000 the steps of a loss that is a square explode, as in scikit-learn's SGDClassifier"
SQUARES = ("squared_error", "squared_epsilon_insensitive")


def expected_failures(estimator):
    expected = {
        "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
        "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
    }
    steep = isinstance(estimator, HogwildClassifier) and estimator.loss in SQUARES
    return expected | ({"check_class_weight_classifiers": STEEP} if steep else {})


@parametrize_with_checks(
    [*FAMILIES, *(OTHER_LOSSES if references.ALL else [])], expected_failed_checks=expected_failures
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::FutureWarning")
def test_the_contract(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", SQUARES)
def test_theirs_fails_the_check_that_ours_may_fail(loss):
    with pytest.raises(AssertionError):
        check_class_weight_classifiers("SGDClassifier", SGDClassifier(loss=loss, **GENTLY, **SHORT))
