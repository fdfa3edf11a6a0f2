"""Scores of files and data sets, which bring their own labels and weights."""

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, r2_score

import hogwild
from hogwild import HogwildClassifier, HogwildFMClassifier, HogwildRegressor
from hogwild.errors import DataError, ParameterError

QUICK = {"max_iter": 5, "tol": None, "random_state": 0}
RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(300, 5)), 2)
CLASSES = (X[:, 0] + RNG.normal(size=300) > 0).astype(int)
NUMBERS = np.round(X[:, 0] - X[:, 1] + RNG.normal(size=300), 3)
WEIGHTS = RNG.integers(1, 20, size=300).astype(float)


def svm(path, y=CLASSES, rows=X):
    dump_svmlight_file(rows, y, str(path), zero_based=False)
    return path


def vw(path, y, weights):
    lines = (
        f"{label:g} {weight:g} | " + " ".join(f"f{j}:{value:g}" for j, value in enumerate(row) if value)
        for row, label, weight in zip(X, y, weights, strict=True)
    )
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("names", [np.array([0, 1]), np.array([0.0, 1.0]), np.array([False, True])])
def test_the_accuracy_in_a_file_is_that_in_arrays(names, tmp_path):
    path = svm(tmp_path / "rows.svm")
    model = HogwildClassifier(**QUICK).fit(X, names[CLASSES])
    expected = model.score(X, names[CLASSES])
    assert 0.5 < expected < 1
    for source in (path, str(path), [path], hogwild.data.open(path)):
        assert model.score(source) == pytest.approx(expected)


def test_the_r2_in_a_file_is_that_in_arrays(tmp_path):
    path = svm(tmp_path / "rows.svm", NUMBERS)
    model = HogwildRegressor(**QUICK).fit(X, NUMBERS)
    expected = model.score(X, NUMBERS)
    assert 0.3 < expected < 1
    for source in (path, str(path), hogwild.data.open(path)):
        assert model.score(source) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize(
    ("kind", "y", "measure"), [(HogwildClassifier, CLASSES, accuracy_score), (HogwildRegressor, NUMBERS, r2_score)]
)
def test_the_weights_of_a_file_count(kind, y, measure, pack, tmp_path):
    path = vw(tmp_path / "rows.vw", y, WEIGHTS)
    model = kind(**QUICK).fit(path)
    predicted = model.predict(path)
    weighted = measure(y, predicted, sample_weight=WEIGHTS)
    assert weighted != pytest.approx(measure(y, predicted), rel=1e-3)
    if pack:
        hogwild.data.pack([path], tmp_path / "packed")
    assert model.score(tmp_path / "packed" if pack else path) == pytest.approx(weighted, rel=1e-5)


def test_arrays_are_scored_as_ever():
    model = HogwildClassifier(**QUICK).fit(X, CLASSES)
    expected = accuracy_score(CLASSES, model.predict(X), sample_weight=WEIGHTS)
    assert model.score(X, CLASSES, WEIGHTS) == model.score(X, CLASSES, sample_weight=WEIGHTS) == expected
    numbers = HogwildRegressor(**QUICK).fit(X, NUMBERS)
    assert numbers.score(X, NUMBERS, WEIGHTS) == r2_score(NUMBERS, numbers.predict(X), sample_weight=WEIGHTS)
    for one in (model, numbers):
        with pytest.raises(ValueError, match="y_true"):
            one.score(X)


def test_labels_that_the_model_cannot_know(tmp_path):
    words = HogwildClassifier(**QUICK).fit(X, np.array(["no", "yes"])[CLASSES])
    with pytest.raises(DataError, match=r"rows\.svm: its labels are numbers.*strings such as 'no'"):
        words.score(svm(tmp_path / "rows.svm"))
    model = HogwildClassifier(**QUICK).fit(X, CLASSES)
    with pytest.raises(DataError, match=r"other\.svm: the label -1 is not one of the classes the model knows \(0, 1\)"):
        model.score(svm(tmp_path / "other.svm", 2 * CLASSES - 1))


@pytest.mark.parametrize("kind", [HogwildClassifier, HogwildRegressor])
def test_what_cannot_be_scored(kind, tmp_path):
    path = svm(tmp_path / "rows.svm")
    with pytest.raises(NotFittedError):
        kind().score(path)
    model = kind(**QUICK).fit(path)
    with pytest.raises(ParameterError, match="labels and weights of its own"):
        model.score(path, CLASSES)
    with pytest.raises(ParameterError, match="labels and weights of its own"):
        model.score(path, sample_weight=WEIGHTS)
    (tmp_path / "bare.svm").write_text("1:0.5 2:1\n1:0.25\n")
    assert model.predict(tmp_path / "bare.svm").shape == (2,)  # no label is needed to predict, but one is to score
    with pytest.raises(DataError, match="label"):
        model.score(tmp_path / "bare.svm")


def test_columns_beyond_the_models_are_left_out(tmp_path):
    wider = svm(tmp_path / "wider.svm", rows=np.hstack([X, np.ones((300, 2))]))
    model = HogwildClassifier(**QUICK).fit(X, CLASSES)
    model._reading = {"base": 1}
    assert model.score(wider) == model.score(X, CLASSES)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_several_classes_are_fitted_from_a_packed_folder(tmp_path, n_jobs):
    flowers, kinds = load_iris(return_X_y=True)
    flowers = (flowers - flowers.mean(axis=0)) / flowers.std(axis=0)
    dump_svmlight_file(flowers, kinds, str(tmp_path / "iris.svm"))
    hogwild.data.pack([tmp_path / "iris.svm"], tmp_path / "packed")
    model = HogwildClassifier(max_iter=50, tol=None, n_jobs=n_jobs, random_state=0).fit(tmp_path / "packed")
    assert model.score(tmp_path / "packed") > 0.8


def table(path, name, y=CLASSES):
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])} | {name: y}
    frame = pyarrow.table(columns)
    (pyarrow.csv.write_csv if path.suffix == ".csv" else pyarrow.parquet.write_table)(frame, path)
    return path


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("kind", [HogwildClassifier, HogwildFMClassifier])
def test_the_label_of_a_table_is_named(kind, ending, tmp_path):
    train, other = table(tmp_path / f"a.{ending}", "bought"), table(tmp_path / f"b.{ending}", "sold")
    model = kind(**({"max_iter": 3, "random_state": 0} if kind is HogwildFMClassifier else QUICK)).fit(train, "bought")
    expected = accuracy_score(CLASSES, model.predict(train))
    assert expected > 0.6
    assert model.score(train) == model.score(train, "bought") == model.score(other, "sold") == pytest.approx(expected)
    with pytest.raises(DataError, match="bought"):
        model.score(other)
    with pytest.raises(DataError, match=r"there is no .*column 'gone'"):
        model.score(train, "gone")


def test_labels_that_are_named_where_there_is_no_column(tmp_path):
    path = svm(tmp_path / "rows.svm")
    for call in (HogwildClassifier(**QUICK).fit, hogwild.data.open):
        given = {"label": "click"} if call is hogwild.data.open else {"y": "click"}
        with pytest.raises(ParameterError, match=r"'click' names a column of a table, .* is a svmlight file"):
            call(path, **given)
    with pytest.raises(
        ParameterError, match=r"Name the column when you open it: hogwild.data.open\(path, label='click'\)"
    ):
        HogwildClassifier(**QUICK).fit(hogwild.data.open(path), "click")
    with pytest.raises(ParameterError, match="open data set has its labels"):
        hogwild.data.open(hogwild.data.open(path), label="click")
