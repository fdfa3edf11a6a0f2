"""Factorisation machines, ratings and perceptrons score under another runtime as they do here."""

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import hogwild
from hogwild import HogwildClassifier, HogwildFMClassifier, HogwildRecommender, SparseMLP, onnx_graph
from hogwild.data.present_columns import PresentColumns
from hogwild.data.ratings import Ids
from hogwild.errors import ParameterError
from hogwild.models.factorisation_machine import FactorisationModel
from hogwild.models.linear import LinearModel
from hogwild.models.ratings import RatingsModel
from hogwild.models.sparse_mlp import SparseMLPModel

FEATURES, TWO = 9, (-1.0, 1.0)
FIELDS = np.array([0, 0, 1, 1, 4, 4, 2, 2, 4], np.uint32)  # No feature has field 3.
LOSSES = {
    "logistic": (TWO, "sigmoid"),
    "hinge": (TWO, "none"),
    "modified-huber": (TWO, "huber"),
    "squared": (None, "identity"),
    "poisson": (None, "exp"),
}


def some(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32) / 2


def rows():
    """Rows of different lengths, among them an empty one."""
    X = some(20, FEATURES, seed=5)
    X[np.abs(X) < 0.25] = 0
    X[3] = 0
    return X


def sparse(X, spare=2):
    """The rows as columns and values, filled up with a column that they may have, and with zeros."""
    width = int((X != 0).sum(axis=1).max()) + spare
    columns, values = np.full((len(X), width), 4, np.int64), np.zeros((len(X), width), X.dtype)
    for number, row in enumerate(X):
        found = np.flatnonzero(row)
        columns[number, : len(found)], values[number, : len(found)] = found, row[found]
    return {"columns": columns, "values": values}


def served(proto, **inputs):
    onnx.checker.check_model(proto, full_check=True)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    assert {each.name for each in session.get_inputs()} == set(inputs)
    return dict(zip([each.name for each in session.get_outputs()], session.run(None, inputs), strict=True))


def check(model, proto, inputs, X):
    found = served(proto, **({"X": X} if inputs == "dense" else sparse(X)))
    if model.classes is None:
        np.testing.assert_allclose(found["variable"][:, 0], model.predict(X), rtol=1e-4, atol=1e-5)
        return
    np.testing.assert_array_equal(found["label"], model.predict(X))
    if "probabilities" in found:
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), rtol=1e-4, atol=1e-5)
    else:
        np.testing.assert_allclose(found["scores"], model.decide(X)[:, 0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("inputs", ["dense", "sparse"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["fm", "ffm"])
def test_factorisation_machines(kind, loss, inputs):
    classes, link = LOSSES[loss]
    fields = FIELDS if kind == "ffm" else None
    factors = some(FEATURES, 1 if fields is None else 5, 3)
    model = FactorisationModel(
        some(FEATURES), some(1), factors, loss, classes, link, normalise=loss == "logistic", fields=fields
    )
    check(model, model.to_onnx(inputs=inputs), inputs, rows())


@pytest.mark.parametrize("inputs", ["dense", "sparse"])
@pytest.mark.parametrize("columns", [None, PresentColumns(np.array([1, 4, 8], np.uint32), FEATURES)])
def test_linear_models_of_files(columns, inputs):
    lines = FEATURES if columns is None else len(columns)
    model = LinearModel(some(lines, 3), some(3), "softmax", (0.0, 3.0, 7.0), "sigmoid", columns=columns)
    check(model, model.to_onnx(inputs=inputs), inputs, rows())


@pytest.mark.parametrize("names", [(["ann", "bob", "größer"], [3, 1, 2**40]), ([5, 6, 7], ["a", "b c", ""])])
def test_ratings(names, tmp_path):
    users, items = Ids.of(names[0]), Ids.of(names[1])
    model = RatingsModel(some(3, 4), some(3, 4), some(3), some(3), 3.0, (2.5, np.inf), users, items)
    model.to_onnx(tmp_path / "ratings.onnx")
    asked = [
        [*names[0], *names[0], names[0][0], *["nobody" if isinstance(names[0][0], str) else 99] * 2],
        [*names[1], *names[1][::-1], *["nothing" if isinstance(names[1][0], str) else 99] * 2, names[1][0]],
    ]
    given = [np.array(part, object if isinstance(part[0], str) else np.int64) for part in asked]
    found = served(onnx.load(tmp_path / "ratings.onnx"), user=given[0], item=given[1])["scores"]
    np.testing.assert_allclose(found, model.predict(*asked), rtol=1e-5)
    assert found.min() == 2.5


@pytest.mark.parametrize("inputs", ["dense", "sparse"])
@pytest.mark.parametrize("hidden", [[4], [4, 3]])
def test_perceptrons(hidden, inputs):
    torch.manual_seed(0)
    net, X = SparseMLP(FEATURES, hidden, 3), rows()
    given = {"X": X} if inputs == "dense" else sparse(X)
    csr = [np.flatnonzero(row) for row in X]
    offsets = np.cumsum([0, *map(len, csr)])
    values = np.concatenate([row[found] for row, found in zip(X, csr, strict=True)])
    with torch.no_grad():
        outputs = net(torch.tensor(np.concatenate(csr)), torch.tensor(offsets), torch.tensor(values)).numpy()
    np.testing.assert_allclose(served(net.to_onnx(inputs=inputs), **given)["scores"], outputs, rtol=1e-4, atol=1e-6)
    model = SparseMLPModel(net, (1.0, 2.0, 5.0))
    found = served(model.to_onnx(inputs=inputs), **given)
    shares = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found["probabilities"], shares, rtol=1e-4)
    np.testing.assert_array_equal(found["label"], np.array([1.0, 2.0, 5.0])[outputs.argmax(axis=1)])


def test_estimators(tmp_path):
    X = rows()
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    machine = HogwildFMClassifier(2, max_iter=3, random_state=0).fit(X, y)
    machine.to_onnx(tmp_path / "fm.onnx", inputs="sparse")
    found = served(onnx.load(tmp_path / "fm.onnx"), **sparse(X))
    assert list(found["label"]) == list(machine.predict(X))
    np.testing.assert_allclose(found["probabilities"], machine.predict_proba(X), rtol=1e-4)
    linear = HogwildClassifier(random_state=0, max_iter=3, tol=None).fit(X.astype(float), y)
    found = served(linear.to_onnx(inputs="sparse"), **sparse(X.astype(float)))
    assert list(found["label"]) == list(linear.predict(X.astype(float)))
    recommender = HogwildRecommender(2, random_state=0, max_iter=2).fit((["a", "b"], [1, 2], [3.0, 4.0]))
    found = served(recommender.to_onnx(), user=np.array(["b", "a"], object), item=np.array([1, 9]))
    np.testing.assert_allclose(found["scores"], recommender.predict((["b", "a"], [1, 9])), rtol=1e-5)


def test_a_column_that_is_not_there_is_an_error():
    model = FactorisationModel(some(FEATURES), some(1), some(FEATURES, 1, 2), "squared", None, "identity")
    given = {"columns": np.array([[FEATURES]]), "values": np.ones((1, 1), np.float32)}
    with pytest.raises(Exception, match="out of"):
        served(model.to_onnx(inputs="sparse"), **given)


def test_what_cannot_be_exported_is_told(monkeypatch):
    model = FactorisationModel(some(FEATURES), some(1), some(FEATURES, 1, 2), "squared", None, "identity")
    with pytest.raises(ParameterError, match="'inputs' parameter must be 'dense', 'sparse' or 'table'"):
        model.to_onnx(inputs="csr")
    monkeypatch.setattr(onnx_graph, "LARGEST", 40)
    with pytest.raises(ParameterError, match="of 2 GiB at most"):
        model.to_onnx()
    wide = LinearModel(
        some(1, 1), some(1), "squared", columns=PresentColumns(np.array([1], np.uint64), 2**33), link="identity"
    )
    with pytest.raises(ParameterError, match=r"32\.0 GiB"):
        wide.to_onnx(inputs="sparse")


def test_a_loaded_model_is_exported(tmp_path):
    model = FactorisationModel(some(FEATURES), some(1), some(FEATURES, 5, 2), "hinge", TWO, "none", fields=FIELDS)
    model.save(tmp_path / "ffm.model")
    check(model, hogwild.load(tmp_path / "ffm.model").to_onnx(inputs="sparse"), "sparse", rows())
