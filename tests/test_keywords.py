"""Keywords that people know from other packages are answered with what to write here."""

import ast
import inspect
import re

import numpy as np
import pytest
from sklearn.base import clone

import hogwild

ADVISED = {
    hogwild.minimise: [
        "epochs",
        "lr",
        "learning_rate",
        "n_jobs",
        "workers",
        "loss",
        "optimizer",
        "alpha",
        "random_state",
    ],
    hogwild.Linear: ["alpha", "C", "penalty", "epochs", "lr", "n_jobs", "k"],
    hogwild.FactorisationMachine: ["k", "n_factors", "alpha", "epochs", "workers"],
    hogwild.FieldAwareFactorisationMachine: ["k", "lr"],
    hogwild.MatrixCompletion: ["k", "factors", "lr", "epochs"],
    hogwild.Module: ["batch_size", "criterion", "lr", "epochs", "num_workers", "optimizer"],
    hogwild.Budget: ["max_iter", "timeout"],
    hogwild.Hogwild: ["n_jobs"],
    hogwild.Locked: ["num_workers"],
    hogwild.rules.Adam: ["lr"],
    hogwild.shared: ["num_workers", "n_jobs"],
    hogwild.HogwildClassifier: ["epochs", "C", "lr", "workers"],
    hogwild.HogwildRegressor: ["epochs", "workers"],
    hogwild.HogwildFMClassifier: ["k", "epochs", "lr", "workers"],
    hogwild.HogwildRecommender: ["k", "epochs", "lr", "workers"],
}
CASES = [(thing, name) for thing, names in ADVISED.items() for name in names]


@pytest.mark.parametrize(("thing", "name"), CASES, ids=lambda each: getattr(each, "__name__", each))
def test_a_keyword_of_another_package_is_answered(thing, name):
    with pytest.raises(TypeError) as caught:
        thing(**{name: 3})
    said = str(caught.value)
    assert said.startswith(f"{thing.__name__} has no parameter {name!r}. ")
    assert "\n" not in said
    assert "There are" not in said  # advice of its own, no list
    for written in re.findall(r"(?:Write|:|or) (\w+)=", said):
        owner = hogwild.Linear if "hogwild.Linear" in said else thing
        assert written in inspect.signature(owner).parameters
    for path in re.findall(r"hogwild\.([\w.]+)", said):
        found = hogwild
        for part in path.split("."):
            found = getattr(found, part)
    for call in re.findall(r"hogwild\.[\w.]+\((?:[^()]|\([^()]*\))*\)", said):
        node = ast.parse(call).body[0].value
        wanted = {keyword.arg for keyword in node.keywords}
        called = hogwild
        for part in ast.unparse(node.func).split(".")[1:]:
            called = getattr(called, part)
        assert wanted <= set(inspect.signature(called).parameters)


def test_a_slip_is_answered_with_the_nearest_name():
    with pytest.raises(
        TypeError, match=r"minimise has no parameter 'shedule'\. Did you mean 'schedule'\? There are problem, "
    ):
        hogwild.minimise(None, shedule="cosine")


def test_signatures_are_those_of_the_functions():
    assert "budget" in inspect.signature(hogwild.minimise).parameters
    assert next(iter(inspect.signature(hogwild.Budget).parameters)) == "epochs"
    assert clone(hogwild.HogwildClassifier(alpha=0.5)).alpha == 0.5


def test_rows_and_labels_belong_together():
    rows, labels = np.eye(3), np.array([0, 1, 1])
    with pytest.raises(hogwild.errors.ParameterError, match=r"Got 'ndarray' instead.*Linear\(\(X, y\), 'logistic'\)"):
        hogwild.Linear(rows, labels)
