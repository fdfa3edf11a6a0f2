from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import references
from hogwild import Constant, Linear, minimise
from hogwild.errors import ParameterError
from hogwild.jit import bind, specialise
from hogwild.losses import LOSSES, named, own
from hogwild.losses.loss import one_vs_rest, softmax

# Where a loss has a kink: in the margin z y, or in the residual z - y.
MARGIN_KINKS = {"hinge": (1,), "squared-hinge": (1,), "modified-huber": (1, -1), "perceptron": (0,)}
RESIDUAL_KINKS = {
    "huber": (-0.1, 0.1),
    "epsilon-insensitive": (-0.1, 0.1),
    "squared-epsilon-insensitive": (-0.1, 0.1),
    "quantile": (0,),
}
EVERY = pytest.mark.parametrize("loss", LOSSES.values(), ids=str)
SCORES = st.floats(-20, 20)


def labels_of(loss):
    if loss.targets == "classes":
        return st.sampled_from([-1.0, 1.0])
    return st.integers(0, 20).map(float) if loss.targets == "counts" else st.floats(-20, 20)


def kinks(loss, y):
    """The scores at which the loss of label ``y`` has a kink."""
    return [m * y for m in MARGIN_KINKS.get(loss.name, ())] + [y + r for r in RESIDUAL_KINKS.get(loss.name, ())]


@EVERY
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_the_derivative_is_the_slope_of_the_loss(loss, data):
    z, y = data.draw(SCORES), data.draw(labels_of(loss))
    h = 1e-5 * max(1.0, abs(z))
    if any(abs(z - kink) < 2 * h for kink in kinks(loss, y)):
        z += 4 * h
    numerical = (loss(z + h, y)[0] - loss(z - h, y)[0]) / (2 * h)
    assert loss(z, y)[1] == pytest.approx(numerical, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("loss", [named("logistic"), named("squared")], ids=str)
@given(data=st.data())
def test_the_slope_tells_how_bent_a_smooth_loss_is(loss, data):
    z, y, h = data.draw(SCORES), data.draw(labels_of(loss)), 1e-4
    second = (loss(z + h, y)[1] - loss(z - h, y)[1]) / (2 * h)
    assert loss.curvature * loss.bend(loss(z, y)[1]) == pytest.approx(second, rel=1e-4, abs=1e-6)


@EVERY
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_values_and_derivatives_are_those_of_the_formula(loss, data):
    z, y = data.draw(SCORES), data.draw(labels_of(loss))
    value, slope = references.LOSSES[loss.name](np.float64(z), y, loss.parameter)
    assert loss(z, y) == pytest.approx((float(value), float(slope)), rel=1e-9, abs=1e-9)


@EVERY
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_every_loss_is_convex_and_its_derivative_supports_it_even_at_kinks(loss, data):
    y = data.draw(labels_of(loss))
    at = st.one_of(SCORES, st.sampled_from(kinks(loss, y) or [0.0]))
    a, b = data.draw(at), data.draw(at)
    value, slope = loss(a, y)
    size = max(1.0, abs(value), abs(loss(b, y)[0]))
    assert loss(b, y)[0] >= value + slope * (b - a) - 1e-9 * size


@EVERY
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_no_loss_but_poisson_is_negative(loss, data):
    z, y = data.draw(SCORES), data.draw(labels_of(loss))
    assert loss.name == "poisson" or loss(z, y)[0] >= 0


@pytest.mark.parametrize(
    ("name", "z", "y", "expected"),
    [
        ("hinge", 1.0, 1.0, (0.0, -1.0)),
        ("hinge", 0.0, -1.0, (1.0, 1.0)),
        ("squared-hinge", 1.0, 1.0, (0.0, 0.0)),
        ("perceptron", 0.0, 1.0, (0.0, -1.0)),  # or nothing would ever begin to move
        ("perceptron", 0.0, -1.0, (0.0, 1.0)),
        ("modified-huber", -1.0, 1.0, (4.0, -4.0)),
        ("modified-huber", 1.0, 1.0, (0.0, 0.0)),
        ("logistic", 0.0, 1.0, (math.log(2), -0.5)),
        ("squared", 3.0, 1.0, (2.0, 2.0)),
        ("huber:2", 5.0, 1.0, (6.0, 2.0)),
        ("huber:2", 3.0, 1.0, (2.0, 2.0)),
        ("epsilon-insensitive:0.5", 1.5, 1.0, (0.0, 0.0)),
        ("epsilon-insensitive:0.5", 2.0, 1.0, (0.5, 1.0)),
        ("squared-epsilon-insensitive:0.5", 2.0, 1.0, (0.25, 1.0)),
        ("quantile:0.9", 0.0, 1.0, (0.9, -0.9)),
        ("quantile:0.75", 2.0, 1.0, (0.25, 0.25)),
        ("poisson", 0.0, 3.0, (1.0, -2.0)),
    ],
)
def test_values_known_by_hand(name, z, y, expected):
    assert named(name)(z, y) == pytest.approx(expected)


def at(z, y, parameter):
    return loss(z, y, parameter)  # noqa: F821  (bound by the test)


@EVERY
def test_compiled_losses_are_the_same_and_never_overflow_into_nan(loss):
    compiled = specialise(at, cache=False, loss=loss.function)
    y = 3.0 if loss.targets == "counts" else 1.0
    for z in (-30.0, -1.0, -0.1, 0.0, 0.3, 1.0, 2.5, 30.0):
        assert compiled(z, y, loss.parameter) == pytest.approx(loss(z, y), rel=1e-12)
    for z in (-1e4, 1e4):
        value, slope = compiled(z, y, loss.parameter)
        if loss.name == "poisson" and z > 0:  # exp(z) is what it is; the divergence guard must see it
            assert value == slope == math.inf
        else:
            assert math.isfinite(value)
            assert math.isfinite(slope)


@pytest.mark.parametrize("z", [-1e4, -800.0, 800.0, 1e4])
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_logistic_is_exact_far_out(z, y):
    value, slope = LOSSES["logistic"](z, y)
    assert value == pytest.approx(max(0.0, -z * y))
    assert slope == pytest.approx(-y if z * y < 0 else 0.0)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.floats(-30, 30, width=32), min_size=2, max_size=6).flatmap(
        lambda scores: st.tuples(st.just(scores), st.integers(0, len(scores) - 1))
    )
)
def test_softmax_slopes_are_the_gradient(case):
    scores, label = np.array(case[0]), case[1]
    assert_slopes(softmax, lambda s: references.softmax(s, label)[0], scores, label)


@pytest.mark.parametrize("name", ["logistic", "squared-hinge", "hinge", "modified-huber", "perceptron"])
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_one_vs_rest_slopes_are_the_gradient(name, data):
    scores = np.array(data.draw(st.lists(st.floats(-5, 5).filter(away_from_kinks), min_size=3, max_size=5)))
    label = data.draw(st.integers(0, len(scores) - 1))
    function = bind(one_vs_rest, loss=LOSSES[name].function)
    assert_slopes(function, lambda s: references.one_vs_rest(name, s, label)[0], scores, label)


def away_from_kinks(z):
    return all(abs(z - kink) > 1e-4 for kink in (-1, 0, 1))


def assert_slopes(function, reference, scores, label):
    slopes, h = np.empty(len(scores)), 1e-5
    assert function(scores, label, 0.0, np.ones(len(scores)), slopes) == pytest.approx(reference(scores), abs=1e-9)
    for k, unit in enumerate(np.eye(len(scores))):
        numerical = (reference(scores + h * unit) - reference(scores - h * unit)) / (2 * h)
        assert slopes[k] == pytest.approx(numerical, abs=1e-5)


def test_class_weights_count_for_the_label_or_where_a_class_is_the_one():
    scores, weights, slopes, plain = np.array([0.5, -0.2, 0.1]), np.array([2.0, 3.0, 5.0]), np.empty(3), np.empty(3)
    assert softmax(scores, 2, 0.0, weights, slopes) == pytest.approx(5 * softmax(scores, 2, 0.0, np.ones(3), plain))
    assert slopes == pytest.approx(5 * plain)
    function = bind(one_vs_rest, loss=LOSSES["logistic"].function)
    value, unweighted = function(scores, 2, 0.0, weights, slopes), function(scores, 2, 0.0, np.ones(3), plain)
    assert slopes == pytest.approx(plain * [1, 1, 5])
    assert value == pytest.approx(unweighted + 4 * LOSSES["logistic"](0.1, 1.0)[0])


def test_softmax_does_not_overflow():
    slopes = np.empty(3)
    assert softmax(np.array([1e4, -1e4, 0.0], np.float32), 1, 0.0, np.ones(3), slopes) == pytest.approx(2e4)
    assert slopes == pytest.approx([1, -1, 0])


def test_softmax_of_two_classes_is_logistic():
    slopes = np.empty(2)
    value = softmax(np.array([0.3, 1.5]), 1, 0.0, np.ones(2), slopes)
    assert (value, slopes[1]) == pytest.approx(LOSSES["logistic"](1.2, 1.0))


# Losses by name


@pytest.mark.parametrize("name", [name for name, loss in LOSSES.items() if loss.parameter])
def test_a_parameter_is_given_behind_a_colon(name):
    loss = named(f"{name}:0.25")
    assert (loss.name, loss.parameter, str(loss)) == (name, 0.25, f"{name}:0.25")
    assert loss(3.0, 1.0) != LOSSES[name](3.0, 1.0)


@pytest.mark.parametrize("wrong", ["huber:-1", "huber:wide", "huber:", "quantile:1", "quantile:1.5", "huber:nan"])
def test_a_wrong_parameter_is_refused_with_an_example(wrong):
    with pytest.raises(
        ParameterError, match=r"a name and a (positive number|number between 0 and 1), such as '[a-z]+:0\.\d'"
    ):
        named(wrong)


def test_a_parameter_where_there_is_none_is_refused():
    with pytest.raises(ParameterError, match="'hinge' has no parameter"):
        named("hinge:0.5")


# A loss of the user's own


def my_squared(z, y):
    r = z - y
    return 0.5 * r * r, r


def regression(n=300, d=6):
    random = np.random.default_rng(0)
    X = random.standard_normal((n, d))
    y = X @ random.standard_normal(d) + 0.1 * random.standard_normal(n)
    return scipy.sparse.csr_array(X.astype(np.float32)), y


def trained(loss):
    run = minimise(Linear(regression(), loss, l2=1e-3), "sgd", Constant(0.01), "serial", budget=2)
    return run.model.weights, run.model.intercept, run.objective


def test_a_loss_of_ones_own_becomes_the_same_machine_code_as_a_built_in_one():
    mine, built_in = trained(my_squared), trained("squared")
    assert mine[0].tobytes() == built_in[0].tobytes()
    assert mine[1].tobytes() == built_in[1].tobytes()
    assert mine[2] == built_in[2]
    assert abs(mine[0]).max() > 0.1


def test_a_loss_of_ones_own_may_call_functions_and_remember_constants():
    half = 0.5

    def closed_over(z, y):
        value, r = my_squared(z, y)
        return half * 2 * value, r

    loss = named(closed_over)
    assert specialise(at, cache=False, loss=loss.function)(3.0, 1.0, loss.parameter) == (2.0, 2.0)


def test_a_loss_of_ones_own_is_named_after_its_function_and_takes_the_labels_it_says():
    assert str(named(my_squared)) == "my_squared"
    assert own(my_squared).targets == "any"
    mine = own(lambda z, y: (max(0.0, 1.0 - z * y), -y if z * y < 1.0 else 0.0), targets="classes")
    assert mine(0.5, 1.0) == (0.5, -1.0)
    assert Linear((np.eye(3), [0, 1, 2]), mine).n_outputs == 3


def test_a_loss_that_cannot_be_compiled_is_an_error_in_words():
    data = np.eye(4), np.arange(4.0)
    with pytest.raises(ParameterError, match=r"cannot be compiled.*plain arithmetic.*Numba says: .*vectorize'"):
        minimise(Linear(data, loss=lambda z, y: (np.vectorize(abs)(z).item(), z - y)), budget=1)


@pytest.mark.parametrize("loss", [loss for loss in LOSSES.values() if loss.targets != "counts"], ids=str)
def test_curvature_is_a_bound_that_is_reached(loss):
    """Where a derivative has no jump; the curvature limits steps."""
    scores = np.linspace(-3, 3, 4_001)
    slopes = np.array([loss(z, 1.0)[1] for z in scores])
    bends = np.abs(np.diff(slopes)) / np.diff(scores)
    near = np.min([np.abs(scores[:-1] - kink) for kink in (*kinks(loss, 1.0), 99.0)], axis=0) < 0.01
    smooth = bends[~near].max()
    assert smooth <= loss.curvature * (1 + 1e-6)
    if smooth > 0.01:
        assert smooth == pytest.approx(loss.curvature, rel=1e-3)
