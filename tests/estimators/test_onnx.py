"""What is exported to ONNX predicts as the estimator does, under another runtime."""

import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import NotFittedError

import hogwild
from hogwild import HogwildClassifier, HogwildOneClassSVM, HogwildRegressor, onnx_graph
from hogwild.errors import MissingExtraError, ParameterError

QUICK = {"max_iter": 5, "tol": None, "random_state": 0}
PROBABLE = ("log_loss", "modified_huber", "softmax")
OTHERS = ("hinge", "perceptron", "squared_error")
LABELS = {
    "integers": np.array([7, -2, 5]),
    "narrow integers": np.array([3, 1, 2], np.uint8),
    "strings": np.array(["yes", "no", "perhaps"]),
    "objects": np.array(["ja", "nein", "größer"], object),
    "numbers": np.array([2.0, 0.0, 1.0]),
    "truths": np.array([True, False]),
}


def inputs(dtype=np.float64, rows=200):
    return np.random.default_rng(0).normal(size=(rows, 6)).astype(dtype)


def made(model, coef, constant=(0.0,), classes=None, dtype=np.float64):
    """An estimator as a fit would leave it, without the time that fits take."""
    coef, constant = np.asarray(coef, dtype), np.asarray(constant, dtype)
    model.n_features_in_ = coef.shape[-1]
    model.coef_ = coef
    setattr(model, "offset_" if isinstance(model, HogwildOneClassSVM) else "intercept_", constant)
    if isinstance(model, HogwildClassifier):
        model.classes_ = np.arange(max(2, len(coef))) if classes is None else np.unique(classes)
    return model


def classifier(loss, count, dtype=np.float64, classes=None):
    outputs, rng = (1 if count == 2 else count), np.random.default_rng(1)
    model = HogwildClassifier(loss)
    return made(model, rng.normal(size=(outputs, 6)), rng.normal(size=outputs), classes, dtype)


def served(proto, X):
    """The outputs by name; shapes and types as declared."""
    onnx.checker.check_model(proto, full_check=True)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    assert [one.name for one in session.get_inputs()] == ["X"]
    found = dict(zip([one.name for one in session.get_outputs()], session.run(None, {"X": X}), strict=True))
    for output in session.get_outputs():
        assert [len(X) if size == "N" else size for size in output.shape] == list(found[output.name].shape)
    return found


def same_classes(model, X, rtol=1e-5):
    found = served(model.to_onnx(), X)
    np.testing.assert_array_equal(found["label"], model.predict(X))
    if hasattr(model, "predict_proba"):
        assert set(found) == {"label", "probabilities"}
        assert found["probabilities"].dtype == X.dtype
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), rtol=rtol, atol=1e-7)
    else:
        assert set(found) == {"label", "scores"}
        np.testing.assert_allclose(found["scores"], model.decision_function(X), rtol=rtol, atol=1e-5)
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("loss", [*PROBABLE, *OTHERS])
def test_classifiers(loss, count, dtype):
    same_classes(classifier(loss, count, dtype), inputs(dtype))


@pytest.mark.parametrize(
    ("kind", "count"), [(kind, count) for kind, names in LABELS.items() for count in range(2, len(names) + 1)]
)
def test_labels_of_every_kind(kind, count):
    names = LABELS[kind]
    label = same_classes(classifier("hinge", count, classes=names[:count]), inputs())["label"]
    assert set(label) == set(names[:count])
    assert label.dtype == {"f": float, "b": bool, "i": np.int64, "u": np.int64}.get(names.dtype.kind, object)


@given(
    st.sampled_from(PROBABLE),
    st.integers(1, 4).filter(lambda count: count != 2),
    st.sampled_from([np.float32, np.float64]),
    st.integers(0, 2**32 - 1),
    st.sampled_from([1e-3, 1.0, 30.0, 1e4]),
)
@settings(max_examples=60)
def test_probabilities_of_any_weights(loss, outputs, dtype, seed, scale):
    rng = np.random.default_rng(seed)
    # Quarters of small whole numbers: their sums are exact in either precision and in any order.
    coef = np.round(rng.normal(size=(outputs, 5)) * 4) / 4 * max(1.0, np.round(scale))
    model = made(HogwildClassifier(loss), coef, np.round(rng.normal(size=outputs) * 8) / 4, dtype=dtype)
    X = rng.integers(-3, 4, size=(20, 5)).astype(dtype)
    found = same_classes(model, X, rtol=1e-4 if dtype == np.float32 else 1e-9)
    np.testing.assert_allclose(found["probabilities"].sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_no_class_wants(dtype):
    X = np.array([[1.0, 0.0], [0.0, 1.0]], dtype)
    coef = np.array([[-5.0, -1.0], [-9.0, -0.5], [-2.0, -3.0]])
    model = made(HogwildClassifier("modified_huber"), coef, np.zeros(3), dtype=dtype)
    found = same_classes(model, X)["probabilities"]
    np.testing.assert_allclose(found, [[1 / 3, 1 / 3, 1 / 3], [0, 1, 0]], rtol=1e-6)
    low = same_classes(made(HogwildClassifier("log_loss"), coef * 20, np.zeros(3), dtype=dtype), X)["probabilities"]
    np.testing.assert_allclose(low[0], [np.exp(-60), 0, 1], rtol=1e-4, atol=1e-30)  # 0 from here: exp(-140)


def test_a_score_of_zero_is_no():
    found = same_classes(made(HogwildClassifier("log_loss"), np.zeros((1, 2))), np.zeros((3, 2)))
    assert list(found["label"]) == [0, 0, 0]
    assert found["probabilities"].tolist() == [[0.5, 0.5]] * 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson", "quantile"])
def test_regressors(loss, dtype):
    X = inputs(dtype)
    model = made(HogwildRegressor(loss), np.linspace(-0.5, 1, 6), [0.25], dtype=dtype)
    found = served(model.to_onnx(), X)
    assert set(found) == {"variable"}
    assert found["variable"].shape == (200, 1)
    assert found["variable"].dtype == dtype
    np.testing.assert_allclose(found["variable"][:, 0], model.predict(X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_class(dtype):
    X = inputs(dtype)
    model = made(HogwildOneClassSVM(), np.linspace(-0.5, 1, 6), [0.25], dtype=dtype)
    found = served(model.to_onnx(), X)
    assert set(found["label"]) == {-1, 1}
    np.testing.assert_array_equal(found["label"], model.predict(X))
    np.testing.assert_allclose(found["scores"], model.decision_function(X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [HogwildClassifier, HogwildRegressor, HogwildOneClassSVM])
def test_after_sparsify_the_graph_is_the_same(kind):
    model = made(kind(), np.eye(1, 6) if kind is HogwildClassifier else np.eye(6)[0])
    assert model.to_onnx() == model.sparsify().to_onnx()


def test_loss_objects_and_losses_of_ones_own():
    own = classifier(lambda z, y: ((z - y) ** 2 / 2, z - y), 3)
    assert set(same_classes(own, inputs())) == {"label", "scores"}
    huber = classifier(hogwild.losses.named("modified-huber"), 3)
    assert set(same_classes(huber, inputs())) == {"label", "probabilities"}


@pytest.mark.parametrize("kind", [HogwildClassifier, HogwildRegressor, HogwildOneClassSVM])
def test_after_fits_to_arrays_and_files(kind, tmp_path):
    X = inputs()
    dump_svmlight_file(X, X[:, 0] > 0, str(tmp_path / "rows.svm"))
    for source, dtype in (((X, X[:, 0] > 0), np.float64), ((tmp_path / "rows.svm",), np.float32)):
        model = kind(**QUICK).fit(*source)
        found = served(model.to_onnx(), X.astype(dtype))
        first = found.get("label", found.get("variable"))
        np.testing.assert_allclose(first.ravel(), model.predict(X.astype(dtype)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("as_path", [str, lambda path: path])
def test_a_path_is_written_to(as_path, tmp_path):
    returned = classifier("log_loss", 3).to_onnx(as_path(tmp_path / "model.onnx"))
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    assert onnx.load(tmp_path / "model.onnx") == returned


@pytest.mark.parametrize("kind", [HogwildClassifier, HogwildRegressor, HogwildOneClassSVM])
def test_what_is_not_fitted_is_not_exported(kind, tmp_path):
    with pytest.raises(NotFittedError):
        kind().to_onnx(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    model = made(HogwildRegressor(), np.ones(6))
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'hogwild\[onnx\]'"):
        model.to_onnx()


def test_weights_beyond_the_format_are_refused(monkeypatch):
    model = made(HogwildRegressor(), np.ones(6))
    monkeypatch.setattr(onnx_graph, "LARGEST", 40)
    with pytest.raises(ParameterError, match="56 B"):
        model.to_onnx()


def test_extreme_scores_in_single_precision_give_probabilities_without_a_warning():
    model = made(HogwildClassifier("log_loss"), [[1000.0, 0.0]], dtype=np.float32)
    found = model.predict_proba(np.array([[-1, 0], [1, 0]], np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [[1, 0], [0, 1]], atol=1e-30)
