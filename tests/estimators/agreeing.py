"""Fits of ours and of scikit-learn's with the same settings, side by side.

Whole data sets, every loss, penalty and learning rate, after a few epochs (long before convergence: so every step was
the same) or as many as the stopping criterion takes. ``make agreement`` tries SETTINGS with every data set.
"""

import itertools
import os
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.preprocessing import scale

import references
from hogwild import HogwildClassifier, HogwildRegressor
from hogwild.estimators.sklearn_parameters import loss_of

SHARED = Path(__file__).parents[3] / "shared" / "data"
MARGIN = ("hinge", "log_loss", "modified_huber", "squared_hinge", "perceptron")
RESIDUAL = ("squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive")
RATES = ("optimal", "constant", "invscaling", "adaptive", "pa1", "pa2")
PENALTIES = ("l2", "l1", "elasticnet", None)
SETTINGS = {
    "short": {"max_iter": 2, "tol": None, "alpha": 1e-3},
    "until it stalls": {"max_iter": 40, "alpha": 1e-3, "tol": 1e-2},
    "weak": {"max_iter": 5, "tol": None},
    "defaults": {},
    "strong": {"alpha": 1e-3},
    "other order": {"max_iter": 5, "tol": None, "random_state": 7, "eta0": 0.1, "l1_ratio": 0.4},
}
EACH = int(os.environ.get("HOGWILD_AGREEMENT", "0"))  # of so many cases one; 0: only those that are quick
EVERYTHING = EACH > 0


def cancer():
    return scale(load_breast_cancer().data), load_breast_cancer().target


def diabetes():
    return scale(load_diabetes().data), load_diabetes().target


def shared(name):
    if not (SHARED / name).exists():
        pytest.skip("the shared data is not there")
    X, y = load_svmlight_file(str(SHARED / name))
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # theirs takes no others
    return X, y


DATA = {
    "cancer": cancer,
    "raw cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits": lambda: load_digits(n_class=10 if EVERYTHING else 4, return_X_y=True),  # a fit for each of the classes
    "reuters": lambda: shared("reuters.trn.svm.gz"),
    "a9a": lambda: shared("a9a.svm.gz"),
    "diabetes": diabetes,
    "raw diabetes": lambda: load_diabetes(return_X_y=True),
}
NUMBERS = ("diabetes", "raw diabetes")
data_named = cache(lambda name: DATA[name]())


def objective(model, X, y):
    """The regularised objective, summed over the classes."""
    asked = model.get_params()
    loss = loss_of(asked)
    coef = np.atleast_2d(model.coef_)
    scores = X @ coef.T + model.intercept_
    if hasattr(model, "classes_"):
        targets = np.where(y[:, None] == model.classes_, 1.0, -1.0)
        targets = targets[:, 1:] if len(model.classes_) == 2 else targets
    else:
        targets = y[:, None]
    losses = references.LOSSES[loss.name](scores, targets, loss.parameter)[0]
    ratio = {"l1": 1.0, "l2": 0.0}.get(asked["penalty"], asked["l1_ratio"])
    penalty = ratio * np.abs(coef).sum() + (1 - ratio) / 2 * np.square(coef).sum()
    return losses.mean(axis=0).sum() + (asked["alpha"] * penalty if asked["penalty"] else 0.0)


def cases(*names):
    """Every loss with every penalty and learning rate there is for it, with data sets and settings."""
    number = itertools.count()
    for name, settings in itertools.product(names, SETTINGS):
        quick = settings == "short" or (settings == "until it stalls" and name in ("cancer", "diabetes"))
        if not (quick or EVERYTHING):
            continue
        losses, passive = (RESIDUAL, "epsilon_insensitive") if name in NUMBERS else ((*MARGIN, *RESIDUAL), "hinge")
        for loss, penalty, rate in itertools.product(losses, PENALTIES, RATES):
            usual = loss == passive or (penalty in ("l2", "elasticnet") and rate in ("optimal", "adaptive"))
            if (usual or EVERYTHING) and (rate not in ("pa1", "pa2") or loss == passive):
                if EVERYTHING and next(number) % EACH:
                    continue
                yield pytest.param(name, settings, loss, penalty, rate, id=f"{name}-{settings}-{loss}-{penalty}-{rate}")


def agree(ours, theirs, X, y, **asked):
    """The same weights, and so the same objective, after as many epochs, where we round as they do."""
    asked = {"random_state": 0, **asked}
    ours, theirs = ours(**asked, identical_to_sklearn=True).fit(X, y), theirs(**asked).fit(X, y)
    assert (ours.n_iter_, ours.t_) == (theirs.n_iter_, theirs.t_)
    size = max(1.0, np.abs(theirs.coef_).max())
    close = 1e-6 if X.dtype == np.float64 else 1e-4  # averages in float32 are of iterates in float64
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=close, atol=close * size)
    assert objective(ours, X, y) == pytest.approx(objective(theirs, X, y), rel=1e-3, abs=1e-9)
    if theirs.n_iter_ < theirs.max_iter:  # It has converged, so that ours by default is as good.
        quick = type(ours)(**asked).fit(X, y)
        if objective(quick, X, y) > 1.03 * objective(theirs, X, y) + 1e-5:
            # Where steps are large, the order of the rows and the last digits decide.
            found, known = (
                [objective(clone(one).set_params(random_state=seed).fit(X, y), X, y) for seed in range(7)]
                for one in (quick, theirs)
            )
            assert np.median(found) <= 1.03 * max(known) + 1e-5


def agree_on(name, settings, **asked):
    """The same on one of the data sets, with some of SETTINGS. They diverge and stall alike, so nobody need say so."""
    ours, theirs = (HogwildRegressor, SGDRegressor) if name in NUMBERS else (HogwildClassifier, SGDClassifier)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        agree(ours, theirs, *data_named(name), **SETTINGS[settings], **asked)
