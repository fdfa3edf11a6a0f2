"""Fitted estimators are kept by skops and joblib, and go on from where they were."""

import io

import joblib
import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hogwild
from hogwild import HogwildClassifier, HogwildOneClassSVM, HogwildRegressor

QUICK = {"max_iter": 5, "tol": None, "random_state": 0}
X = np.random.default_rng(0).normal(size=(200, 6))
Y = np.array(["a", "b", "c"])[(X[:, 0] > 0.5).astype(int) + (X[:, 1] > 0)]

FITTED = {
    "classifier": lambda: HogwildClassifier(**QUICK).fit(X, Y),
    "averaging": lambda: HogwildClassifier(average=True, **QUICK).fit(X, Y),
    "another rule": lambda: HogwildClassifier(rule="adagrad", **QUICK).fit(X, Y),
    "regressor": lambda: HogwildRegressor(**QUICK).fit(X, X[:, 0]),
    "one class": lambda: HogwildOneClassSVM(**QUICK).fit(X),
    "sparsified": lambda: HogwildClassifier(penalty="l1", alpha=0.1, **QUICK).fit(X, Y).sparsify(),
}


def through_skops(model):
    import skops.io  # which takes seconds, in every process that looks for tests

    kept = skops.io.dumps(model)
    untrusted = skops.io.get_untrusted_types(data=kept)
    return skops.io.loads(kept, trusted=untrusted), untrusted


def through_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


def dense(coef):
    return coef.toarray() if hasattr(coef, "toarray") else coef


def goes_on_alike(model, again):
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    np.testing.assert_array_equal(dense(model.coef_), dense(again.coef_))
    y = Y if isinstance(model, HogwildClassifier) else X[:, 0]
    for one in (model, again):
        one.partial_fit(X, y)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert model.t_ == again.t_


@pytest.mark.parametrize("kind", FITTED)
def test_skops_brings_back_a_model_of_no_types_but_its_own(kind):
    model = FITTED[kind]()
    again, untrusted = through_skops(model)
    # A sparse matrix is not ours; scikit-learn's own estimators are kept with the same one.
    foreign = ["scipy.sparse._csr.csr_matrix"] if kind == "sparsified" else []
    assert untrusted == [f"{type(model).__module__}.{type(model).__name__}", *foreign]
    goes_on_alike(model, again)


@pytest.mark.parametrize("kind", FITTED)
def test_joblib_brings_back_a_model(kind):
    model = FITTED[kind]()
    goes_on_alike(model, through_joblib(model))


def test_parameters_that_are_objects_are_types_of_ours():
    model = HogwildClassifier(
        hogwild.losses.named("modified-huber"), strategy=hogwild.Hogwild(2), rule=hogwild.AdaGrad(), **QUICK
    ).fit(X, Y)
    again, untrusted = through_skops(model)
    assert all(name.startswith("hogwild.") for name in untrusted)
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))
    assert again.get_params()["strategy"] == model.strategy


def test_a_pipeline_and_a_model_from_a_file(tmp_path):
    pipe = make_pipeline(StandardScaler(), HogwildClassifier(**QUICK)).fit(X, Y)
    again, untrusted = through_skops(pipe)
    assert untrusted == ["hogwild.estimators.classifier.HogwildClassifier"]
    np.testing.assert_array_equal(pipe.predict(X), again.predict(X))

    dump_svmlight_file(X, X[:, 0] > 0, str(tmp_path / "rows.svm"), zero_based=False)
    model = HogwildClassifier(**QUICK).fit(tmp_path / "rows.svm")
    again, untrusted = through_skops(model)
    assert untrusted == ["hogwild.estimators.classifier.HogwildClassifier"]
    np.testing.assert_array_equal(model.predict(tmp_path / "rows.svm"), again.predict(tmp_path / "rows.svm"))
