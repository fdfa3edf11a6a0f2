from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import references
from hogwild.errors import ParameterError
from hogwild.jit import specialise
from hogwild.rules import COORDINATE_RULES, FTRL, AdaGrad, Adam, Momentum
from hogwild.rules.rule import shrink

EVERY = pytest.mark.parametrize("name", COORDINATE_RULES)
PENALTIES = pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.0, 0.3), (0.2, 0.0), (0.1, 0.2)])
STEPS = 200


def apply(state, gradients, rates, l1, l2, constants, path):
    for t in range(gradients.size):
        step(state, 0, gradients[t], rates[t], l1, l2, constants)  # noqa: F821  (bound by the test)
        path[t] = state[0, 0]


@pytest.fixture(scope="module")
def compiled():
    return {name: specialise(apply, cache=False, step=rule().step) for name, rule in COORDINATE_RULES.items()}


def walked(how, rule, gradients, rates, l1, l2):
    """Where a sequence of gradients takes one coordinate."""
    path = np.empty(len(gradients), np.float32)
    state = np.array([rule.initial], np.float32)
    constants = tuple(np.float32(c) for c in rule.constants)
    how(state, gradients, rates, np.float32(l1), np.float32(l2), constants, path)
    return path


def reference(name, gradients, rates, l1, l2, **parameters):
    rule, path, at = references.RULES[name](1, **parameters), [], np.array([0])
    for g, rate in zip(gradients.astype(float), rates.astype(float), strict=True):
        rule.step(at, g, rate, l1, l2)
        path.append(rule.w[0])
    return np.array(path)


def sequence(seed):
    """Gradients of changing size and sign, some of them zero, and rates that fall."""
    random = np.random.default_rng(seed)
    gradients = random.standard_normal(STEPS) * np.exp(random.standard_normal(STEPS)) + 0.2
    gradients[random.random(STEPS) < 0.2] = 0
    return gradients.astype(np.float32), (0.3 / (1 + 0.05 * np.arange(STEPS))).astype(np.float32)


@EVERY
@PENALTIES
def test_every_rule_is_its_formula(name, l1, l2, compiled):
    gradients, rates = sequence(seed=len(name))
    expected = reference(name, gradients, rates, l1, l2)
    found = walked(compiled[name], COORDINATE_RULES[name](), gradients, rates, l1, l2)
    assert np.ptp(expected) > 0.01
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@EVERY
def test_rising_and_falling_rates(name, compiled):
    gradients, _ = sequence(seed=9)
    rates = (0.1 + 0.05 * np.sin(np.arange(STEPS) / 5)).astype(np.float32)
    expected = reference(name, gradients, rates, 0.01, 0.1)
    found = walked(compiled[name], COORDINATE_RULES[name](), gradients, rates, 0.01, 0.1)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@EVERY
def test_a_rule_in_plain_python_is_the_same_in_float32(name, compiled):
    from hogwild.jit import bind

    gradients, rates = sequence(seed=3)
    rule = COORDINATE_RULES[name]()
    plain = walked(bind(apply, step=rule.step), rule, gradients, rates, 0.05, 0.1)
    assert plain.dtype == np.float32
    np.testing.assert_allclose(walked(compiled[name], rule, gradients, rates, 0.05, 0.1), plain, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("momentum", {"beta": 0.5}),
        ("momentum", {"beta": 0.0}),
        ("adagrad", {"initial_accumulator": 1.0}),
        ("ftrl", {"beta": 0.1}),
        ("adam", {"beta1": 0.5, "beta2": 0.9, "epsilon": 1e-2}),
    ],
)
def test_constants_of_a_rule_are_used(name, parameters, compiled):
    gradients, rates = sequence(seed=5)
    rule = COORDINATE_RULES[name](**parameters)
    found = walked(compiled[name], rule, gradients, rates, 0.01, 0.02)
    np.testing.assert_allclose(found, reference(name, gradients, rates, 0.01, 0.02, **parameters), rtol=1e-4, atol=1e-4)
    assert abs(found - walked(compiled[name], COORDINATE_RULES[name](), gradients, rates, 0.01, 0.02)).max() > 1e-3


@EVERY
def test_a_rule_that_rests_is_not_moved_by_zero_gradients_and_others_may_be(name, compiled):
    rule = COORDINATE_RULES[name]()
    gradients = np.array([1.0, 0.0, 0.0], np.float32)
    path = walked(compiled[name], rule, gradients, np.full(3, 0.1, np.float32), 0, 0)
    assert path[0] != 0
    if rule.skips_zero_gradient:
        assert path[0] == path[1] == path[2]


@EVERY
def test_a_row_that_two_workers_wrote_parts_of_is_still_a_good_row(name, compiled):
    """Without locks, what a row holds may come from different steps. No weight may jump because of that."""
    rule, constants = COORDINATE_RULES[name](), tuple(np.float32(c) for c in COORDINATE_RULES[name]().constants)

    def stepped(state, gradients, rate):
        after, path = state.copy(), np.empty(len(gradients), np.float32)
        rates = np.broadcast_to(np.float32(rate), len(gradients)).copy()
        compiled[name](
            after, np.array(gradients, np.float32), rates, np.float32(0.01), np.float32(0.01), constants, path
        )
        return after

    gradients = 0.3 * np.random.default_rng(4).standard_normal(100) - 0.5
    before = stepped(np.array([rule.initial], np.float32), gradients, np.linspace(0.3, 0.03, 100))
    one, other = stepped(before, [0.4], 0.01), stepped(before, [-0.6], 0.005)
    settled = abs(stepped(one, [0.0], 0.002)[0, 0] - before[0, 0]) + abs(one - other)[0, 0] + abs(one - before)[0, 0]
    for choice in np.ndindex((3,) * before.shape[1]):
        torn = np.array([[(before, one, other)[which][0, column] for column, which in enumerate(choice)]])
        moved = abs(stepped(torn, [0.0], 0.002)[0, 0] - before[0, 0])
        assert moved < 10 * settled + 0.01 * abs(before[0, 0])
    assert abs(before[0, 0]) > 0.5


def test_momentum_goes_on_without_a_gradient(compiled):
    path = walked(compiled["momentum"], Momentum(), np.array([1, 0, 0], np.float32), np.full(3, 0.1, np.float32), 0, 0)
    assert path == pytest.approx([-0.1, -0.19, -0.271])


@EVERY
@pytest.mark.parametrize("last", [0.0, 1.0], ids=["without gradients", "with gradients"])
def test_no_value_comes_so_near_to_zero_that_arithmetic_is_slow(name, last, compiled):
    """Processors take a hundred times as long for numbers below 1e-38, where means that decay end."""
    rule, visits = COORDINATE_RULES[name](), 200_000
    state = np.array([rule.initial], np.float32)
    gradients = np.full(visits, last, np.float32)
    gradients[:100] = 1
    constants = tuple(np.float32(c) for c in rule.constants)
    compiled[name](
        state, gradients, np.full(visits, 1e-3, np.float32), np.float32(0), np.float32(0), constants, gradients.copy()
    )
    assert ((state == 0) | (abs(state) >= np.finfo(np.float32).tiny)).all()


@EVERY
def test_a_strong_l1_penalty_gives_exact_zeros(name, compiled):
    """Zero gradients first, so that no momentum is left that could hold a weight up."""
    random = np.random.default_rng(0)
    gradients = (0.1 * random.standard_normal(STEPS)).astype(np.float32)
    path = walked(compiled[name], COORDINATE_RULES[name](), gradients, np.full(STEPS, 0.1, np.float32), 5.0, 0.0)
    assert (path[10:] == 0).all()


def test_ftrl_is_zero_exactly_while_the_summed_gradient_is_within_the_summed_penalty(compiled):
    random = np.random.default_rng(2)
    gradients = (random.standard_normal(STEPS) + 0.3).astype(np.float32)
    path = walked(compiled["ftrl"], FTRL(), gradients, np.full(STEPS, 0.1, np.float32), 0.3, 0.0)
    expected = reference("ftrl", gradients, np.full(STEPS, 0.1, np.float32), 0.3, 0.0)
    clear = abs(expected) > 1e-6  # where rounding cannot decide
    assert 10 < (path == 0).sum() < STEPS - 10
    assert ((path != 0) == (expected != 0))[clear | (expected == 0)].mean() > 0.97
    assert (path[expected == 0] == 0).mean() > 0.97


@settings(deadline=None)
@given(
    st.floats(-10, 10), st.floats(1e-3, 10), st.floats(0, 10), st.floats(0, 10),
    st.lists(st.floats(-10, 10), max_size=20),
)  # fmt: skip
def test_shrink_minimises_what_it_says(w, rate, l1, l2, others):
    def cost(v):
        return (v - w) ** 2 / (2 * rate) + l1 * abs(v) + l2 * v * v / 2

    best = float(shrink(w, rate, l1, l2))
    assert best * w >= 0  # never over zero
    assert all(cost(best) <= cost(other) + 1e-6 * (1 + abs(cost(other))) for other in [*others, 0.0, w])


@EVERY
def test_rules_are_plain_frozen_values(name):
    rule = COORDINATE_RULES[name]()
    assert rule == COORDINATE_RULES[name]()
    assert hash(rule) == hash(COORDINATE_RULES[name]())
    assert rule.initial[0] == 0
    assert len(rule.constants) >= 1
    with pytest.raises((dataclasses.FrozenInstanceError, AttributeError, TypeError)):
        rule.initial = (1.0,)


@pytest.mark.parametrize(
    ("rule", "parameters", "message"),
    [
        (Momentum, {"beta": 1.0}, "The 'beta' parameter must be at least 0 and below 1. Got 1.0 instead."),
        (Momentum, {"beta": -0.1}, "The 'beta' parameter"),
        (Momentum, {"beta": float("nan")}, "The 'beta' parameter"),
        (AdaGrad, {"initial_accumulator": 0.0}, "The 'initial_accumulator' parameter must be a positive number"),
        (AdaGrad, {"initial_accumulator": float("nan")}, "The 'initial_accumulator' parameter"),
        (FTRL, {"beta": -1.0}, "The 'beta' parameter must be a positive number"),
        (Adam, {"beta1": 1.0}, "The 'beta1' parameter"),
        (Adam, {"beta2": -1e-9}, "The 'beta2' parameter"),
        (Adam, {"epsilon": 0.0}, "The 'epsilon' parameter"),
    ],
)
def test_wrong_constants_are_refused(rule, parameters, message):
    with pytest.raises(ParameterError, match=message):
        rule(**parameters)
