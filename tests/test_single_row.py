"""One row is scored as many rows are: with the same result and the same checks, without compiled code or sockets."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array, csr_matrix

import hogwild
from hogwild.data.present_columns import PresentColumns
from hogwild.data.ratings import Ids
from hogwild.errors import DataError, ParameterError
from hogwild.models.factorisation_machine import FactorisationModel
from hogwild.models.linear import LinearModel
from hogwild.models.ratings import RatingsModel

FEATURES = 12
RANDOM = np.random.default_rng(3)
TWO, THREE = (-1.0, 1.0), (0.0, 1.0, 5.0)


def some(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def machine(fields=None, **options):
    lines = 1 if fields is None else int(fields.max()) + 1
    return FactorisationModel(
        some(FEATURES), some(1), some(FEATURES, lines, 3), "logistic", TWO, "sigmoid", fields=fields, **options
    )


FIELDS = np.array([0, 1, 2, 0, 1, 2, 3, 3, 3, 1, 1, 0], np.uint32)
MODELS = {
    "two classes": LinearModel(some(FEATURES, 1), some(1), "logistic", TWO, "sigmoid"),
    "three classes": LinearModel(some(FEATURES, 3), some(3), "softmax", THREE, "sigmoid"),
    "huber": LinearModel(some(FEATURES, 1), some(1), "modified-huber", TWO, "huber"),
    "numbers": LinearModel(some(FEATURES, 1), some(1), "squared", None, "identity"),
    "counts": LinearModel(some(FEATURES, 1), some(1), "poisson", None, "exp"),
    "some columns": LinearModel(
        some(3, 1),
        some(1),
        "logistic",
        TWO,
        "sigmoid",
        columns=PresentColumns(np.array([1, 4, 9], np.uint32), FEATURES),
    ),
    "fm": machine(),
    "fm of length one": machine(normalise=True),
    "ffm": machine(FIELDS),
    "ffm of length one": machine(FIELDS, normalise=True),
}
ROWS = {
    "sparse": [0, 0.5, 0, 0, -2, 0, 1, 0, 3, 0, 0, 1],
    "dense": [*np.linspace(-1, 2, FEATURES)],
    "ones": [1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1],
    "one value": [0] * 6 + [2] + [0] * 5,
    "empty": [0] * FEATURES,
}
FORMS = {
    "array": np.array,
    "single precision": lambda rows: np.array(rows, np.float32),
    "fortran": np.asfortranarray,
    "list": list,
    "csr array": csr_array,
    "csr matrix": csr_matrix,
    "csr of long indices": lambda rows: with_long_indices(csr_array(np.array(rows, float))),
    "csc": csc_array,
    "mapping": lambda rows: {column: value for column, value in enumerate(rows[0]) if value},
    "mapping in another order": lambda rows: {column: rows[0][column] for column in reversed(range(FEATURES))},
}


def with_long_indices(matrix):
    return csr_array((matrix.data, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)), matrix.shape)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MODELS)
def test_one_row_is_scored_as_many_are(name, form):
    model = MODELS[name]
    for values in ROWS.values():
        row, twice = FORMS[form]([values]), np.array([values, values], float)
        np.testing.assert_allclose(model.decide(row), model.decide(twice)[:1], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(model.predict(row), model.predict(twice)[:1], rtol=1e-5, atol=1e-5)
        assert model.predict(row).shape == (1,)
        assert model.predict(row).dtype == np.float64
        if model.link in ("sigmoid", "huber"):
            found = model.predict_proba(row)
            np.testing.assert_allclose(found, model.predict_proba(twice)[:1], rtol=1e-5, atol=1e-6)


def test_a_row_with_more_features_than_pairs_are_kept_for():
    features = 300
    fields = (np.arange(features) % 5).astype(np.uint32)
    model = FactorisationModel(some(features), some(1), some(features, 5, 2) / 10, "squared", fields=fields)
    row = some(1, features)
    np.testing.assert_allclose(model.predict(row), model.predict(np.vstack([row, row]))[:1], rtol=1e-4)


def test_integers_and_truths_are_numbers():
    model = MODELS["numbers"]
    for kind in (bool, np.uint8, np.int64, np.float16):
        row = np.eye(1, FEATURES, 2).astype(kind)
        np.testing.assert_allclose(model.predict(row), model.weights[2] + model.intercept, rtol=1e-6)
        np.testing.assert_allclose(model.predict(csr_array(np.eye(1, FEATURES, 2))), model.predict(row))


def test_extreme_scores_have_probabilities():
    model = LinearModel(np.array([[1e30]], np.float32), np.zeros(1, np.float32), "logistic", TWO, "sigmoid")
    np.testing.assert_allclose(model.predict_proba([[1.0]]), [[0, 1]], atol=1e-200)
    np.testing.assert_allclose(model.predict_proba([[-1.0]]), [[1, 0]], atol=1e-200)


def damaged(data, indices, indptr, features=FEATURES):
    """A matrix whose arrays are changed after SciPy has looked at them."""
    matrix = csr_array(np.eye(1, FEATURES))
    matrix.data, matrix.indices, matrix.indptr = np.array(data), np.array(indices), np.array(indptr)
    return matrix


@pytest.mark.parametrize(
    ("row", "what"),
    [
        (damaged([1.0], [FEATURES], [0, 1]), "index 12 is not within"),
        (damaged([1.0], [-1], [0, 1]), "index -1 is not within"),
        (damaged([1.0, 1.0], [3, 10**9], [0, 2]), "index 1000000000 is not within"),
        (damaged([1.0], [0, 1], [0, 2]), "damaged"),
        (damaged([1.0, 2.0], [0, 1], [0, 5]), "damaged"),
        (damaged([1.0, 2.0], [0, 1], [1, 2]), "damaged"),
        (damaged([np.nan], [1], [0, 1]), "nan is not finite"),
        (damaged([1e39], [1], [0, 1]), "too large for single precision"),
        (damaged([1.0, np.inf], [1, 2], [0, 2]), "inf is not finite"),
        (np.full((1, FEATURES), np.nan), "nan is not finite"),
        (np.full((1, FEATURES), -1e39), "too large for single precision"),
        (np.array([["a"] * FEATURES]), "not numbers"),
        ([["a"] * FEATURES], "not numbers"),
        ([[[1.0]] * FEATURES], "must be a matrix"),
        (np.zeros((1, FEATURES + 1)), "13 columns, and 12 are expected"),
        (np.zeros(FEATURES), "must be a matrix"),
        (np.ma.masked_equal(np.zeros((1, FEATURES)), 0), "masked"),
        ({FEATURES: 1.0}, "no column 12"),
        ({-1: 1.0}, "no column -1"),
        ({"age": 1.0}, "not whole numbers"),
        ({1.5: 1.0}, "not whole numbers"),
        ({1: "x"}, "cannot be made into an array"),
        ({1: float("nan")}, "the value nan is not finite"),
        ({1: 2.0, 3: 1e39}, r"column 3: the value 1e\+39"),
        ({1: [1.0, 2.0]}, "not whole numbers"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("name", ["two classes", "ffm"])
def test_a_wrong_row_is_refused(name, row, what):
    with pytest.raises((DataError, ParameterError), match=what):
        MODELS[name].predict(row)


def test_unsorted_and_repeated_columns_are_summed():
    model, row = MODELS["fm"], damaged([1.0, 2.0, 0.5], [4, 1, 4], [0, 3])
    np.testing.assert_allclose(model.predict(row), model.predict({1: 2.0, 4: 1.5}))
    np.testing.assert_allclose(model.decide(row), model.decide({1: 2.0, 4: 1.5}), rtol=1e-5)


def ratings_model(users, items):
    return RatingsModel(
        some(len(users), 4), some(len(items), 4), some(len(users)), some(len(items)), 3.0, (1.0, 5.0), users, items
    )


@pytest.mark.parametrize("grown", [False, True])
def test_one_pair_is_rated_as_many_are(grown):
    users, items = Ids.of(["ann", "bob"]), Ids.of([3, 70, 9])
    if grown:  # New names come after the known ones, and are not in their order.
        users, items = users.with_more(["adam", "zoe"]), items.with_more([1, 50])
    model = ratings_model(users, items)
    names = [*users.names.tolist(), "nobody", "a longer name than any", "", 7]
    numbers = [*items.names.tolist(), 8, -1, 2**70, "9", "x"]
    for user in names:
        for item in numbers:
            many = model.predict([user, user], [item, item])[:1]
            np.testing.assert_allclose(model.predict(user, item), many, rtol=1e-6)
            np.testing.assert_allclose(model.predict([user], (item,)), many, rtol=1e-6)
    assert model.predict("ann", 3).shape == (1,)
    assert ratings_model(Ids.of([]), items).predict("ann", 3).shape == (1,)


def test_models_load_and_score_a_row_without_a_compiler_and_sockets(tmp_path):
    model = ratings_model(Ids.of(["ann"]), Ids.of([1, 2]))
    for name, saved in {**MODELS, "ratings": model}.items():
        saved.save(tmp_path / f"{name}.model")
    program = """
    import sys
    for name in ("numba", "llvmlite", "socket", "_socket", "torch", "sklearn", "scipy"):
        sys.modules[name] = None
    from pathlib import Path
    import hogwild
    for path in sorted(Path(sys.argv[1]).glob("*.model")):
        model = hogwild.load(path)
        if path.stem == "ratings":
            print(path.stem, model.predict("ann", 2)[0], model.recommend("ann", 1)[0])
        else:
            print(path.stem, model.predict({1: 0.5, 4: -2.0})[0], model.predict([[0.25] * 12])[0])
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), tmp_path], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    found = {line.rsplit(" ", 2)[0]: line.rsplit(" ", 2)[1:] for line in run.stdout.splitlines()}
    assert set(found) == {*MODELS, "ratings"}
    for name, numbers in found.items():
        if name != "ratings":
            expected = hogwild.load(tmp_path / f"{name}.model").predict([[0.25] * FEATURES] * 2)[0]
            assert float(numbers[1]) == pytest.approx(expected, rel=1e-5)


def test_a_row_of_scipy_needs_no_compiler(tmp_path):
    MODELS["ffm"].save(tmp_path / "ffm.model")
    program = """
    import sys
    sys.modules["numba"] = sys.modules["llvmlite"] = None
    import socket
    socket.socket.__init__ = lambda *_, **__: sys.exit("a socket")
    import hogwild
    from scipy.sparse import csr_array
    print(hogwild.load(sys.argv[1]).predict_proba(csr_array([[0.25] * 12])).shape)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), tmp_path / "ffm.model"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (run.returncode, run.stdout) == (0, "(1, 2)\n"), run.stderr


def test_links_of_model_files_are_those_of_losses():
    from typing import get_args

    from hogwild.losses.loss import Link
    from hogwild.models.record_checks import LINKS

    assert get_args(Link) == LINKS
