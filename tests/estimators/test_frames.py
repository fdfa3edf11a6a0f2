"""pandas and polars frames in, names kept, alone and behind other steps."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hogwild import (
    HogwildClassifier,
    HogwildFMClassifier,
    HogwildFMRegressor,
    HogwildOneClassSVM,
    HogwildRegressor,
)
from hogwild.errors import DataError

QUICK = {"max_iter": 5, "tol": None, "random_state": 0}
NAMES = ["a", "b", "c", "d"]
X = np.random.default_rng(0).normal(3.0, 2.0, size=(200, 4))
NUMBERS = X @ [0.3, -0.2, 0.1, 0.0]
TRUTHS = X[:, 0] > 3
KINDS = [(HogwildClassifier, TRUTHS), (HogwildRegressor, NUMBERS), (HogwildOneClassSVM, NUMBERS)]
LIBRARIES = {
    "pandas": (lambda values, names=NAMES: pd.DataFrame(values, columns=names), pd.Series),
    "polars": (lambda values, names=NAMES: pl.DataFrame(values, schema=names), pl.Series),
}


@pytest.fixture(params=LIBRARIES)
def library(request):
    return request.param


@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_a_frame_is_as_good_as_its_array_and_keeps_its_names(kind, y, library):
    frame, series = LIBRARIES[library]
    model = kind(**QUICK).fit(frame(X), series(y))
    plain = kind(**QUICK).fit(X, y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert list(model.feature_names_in_) == NAMES
    assert not hasattr(plain, "feature_names_in_")
    np.testing.assert_allclose(model.predict(frame(X)), plain.predict(X), rtol=1e-10)


@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_columns_in_another_order_are_refused(kind, y, library):
    frame, _ = LIBRARIES[library]
    model = kind(**QUICK).fit(frame(X), y)
    for call in (model.predict, lambda X: model.partial_fit(X, y)):
        with pytest.raises(ValueError, match="feature names should match those that were passed during fit"):
            call(frame(X, NAMES[::-1]))


def test_string_labels_of_a_series(library):
    frame, series = LIBRARIES[library]
    names = np.where(TRUTHS, "high", "low")
    model = HogwildClassifier("log_loss", **QUICK).fit(frame(X), series(names.tolist()))
    assert list(model.classes_) == ["high", "low"]
    np.testing.assert_array_equal(
        model.predict(X_frame := frame(X)), HogwildClassifier("log_loss", **QUICK).fit(X, names).predict(X)
    )
    assert model.predict_proba(X_frame).shape == (200, 2)
    assert model.score(X_frame, series(names.tolist()), sample_weight=series(np.ones(200))) > 0.7


def test_float32_columns_and_whole_numbers(library):
    frame, _ = LIBRARIES[library]
    single = frame(X.astype(np.float32))
    model = HogwildRegressor(**QUICK).fit(single, NUMBERS)
    assert model.coef_.dtype == model.predict(single).dtype == np.float32
    assert HogwildRegressor(**QUICK).fit(frame(np.round(X).astype(int)), NUMBERS).coef_.dtype == np.float64


def test_a_missing_cell_is_refused(library):
    frame, _ = LIBRARIES[library]
    values = X.copy()
    values[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        HogwildClassifier(**QUICK).fit(frame(values), TRUTHS)


@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_behind_a_scaler_that_puts_out_frames(kind, y, library):
    frame, _ = LIBRARIES[library]
    pipe = make_pipeline(StandardScaler(), kind(**QUICK)).set_output(transform=library).fit(frame(X), y)
    assert list(pipe[-1].feature_names_in_) == NAMES
    assert list(pipe[:-1].transform(frame(X)).columns) == NAMES
    plain = make_pipeline(StandardScaler(), kind(**QUICK)).fit(X, y)
    np.testing.assert_allclose(pipe.predict(frame(X)), plain.predict(X), rtol=1e-10)


@pytest.mark.parametrize("kind", [HogwildClassifier, HogwildRegressor, HogwildOneClassSVM, HogwildFMRegressor])
def test_columns_of_text_are_named(kind, library):
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[library]({"a": [1.0, 2.0], "city": ["Ulm", "Bonn"]})
    said = r"columns that are not numbers: 'city' .*OneHotEncoder\(\), \['city'\].* hogwild.data.open\(frame, y\)"
    with pytest.raises(DataError, match=said):
        kind().fit(frame, [0, 1])


@pytest.mark.parametrize("kind", [HogwildClassifier, HogwildFMClassifier])
def test_a_model_of_a_table_takes_frames(kind, library, tmp_path):
    columns = {"size": X[:, 0], "city": np.where(X[:, 1] > 3, "Ulm", "Bonn"), "bought": (X[:, 0] > 3).astype(int)}
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    quick = QUICK if kind is HogwildClassifier else {"max_iter": 5, "random_state": 0}
    model = kind(**quick).fit(tmp_path / "t.csv", "bought")
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[library](columns)
    assert model.predict(frame).tolist() == model.predict(tmp_path / "t.csv").tolist()
    assert model.score(frame, columns["bought"]) == model.score(tmp_path / "t.csv") > 0.8
