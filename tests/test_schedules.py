from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from hogwild import (
    Averaging,
    Hogwild,
    Linear,
    LocalSGD,
    ParameterServer,
    Serial,
    Simulator,
    Synchronous,
    minimise,
)
from hogwild.errors import ParameterError
from hogwild.schedules import (
    SCHEDULES,
    Adaptive,
    Backoff,
    Constant,
    Cooldown,
    Cosine,
    InverseScaling,
    InverseTime,
    LinearScaling,
    Moment,
    Optimal,
    Steps,
    Warmup,
    named,
    step_of,
    with_step,
)
from hogwild.training.step_sizes import StepSizes

ROWS, EPOCHS = 100, 8


def moment(updates=None):
    """A run of eight epochs over a hundred rows, update by update."""
    done = np.arange(ROWS * EPOCHS, dtype=float) if updates is None else np.asarray(updates, float)
    return Moment(done + 1, done / ROWS, done / (ROWS * EPOCHS))


@pytest.mark.parametrize(
    ("schedule", "closed_form"),
    [
        (Adaptive(0.3), lambda t, e, f: 0.3 + 0 * t),
        (Constant(0.3), lambda t, e, f: 0.3 + 0 * t),
        (InverseTime(0.5, decay=2.0), lambda t, e, f: 0.5 / (1 + 2 * e)),
        (InverseTime(0.5, decay=0.0), lambda t, e, f: 0.5 + 0 * t),
        (InverseScaling(0.5), lambda t, e, f: 0.5 / t**0.25),
        (InverseScaling(0.5, power=1.0), lambda t, e, f: 0.5 / t),
        (Optimal(1e-3, t0=200.0), lambda t, e, f: 1 / (1e-3 * (200 + t - 1))),
        (Steps(2.0), lambda t, e, f: 2 * 0.1 ** ((f >= 0.5) * 1.0 + (f >= 0.75))),
        (Steps(2.0, at=(0.75, 0.25), factor=0.5), lambda t, e, f: 2 * 0.5 ** ((f >= 0.25) * 1.0 + (f >= 0.75))),
        (Cosine(0.4), lambda t, e, f: 0.4 * np.cos(np.pi * f / 2) ** 2),
        (Cosine(0.4, floor=0.25), lambda t, e, f: 0.1 + 0.3 * (1 + np.cos(np.pi * f)) / 2),
        (Cooldown(0.4, 0.5, 0.25), lambda t, e, f: 0.4 * (1 - 0.75 * np.maximum(0, 2 * f - 1))),
        (Cooldown(0.4), lambda t, e, f: 0.4 * (1 - (1 - 0.2 / EPOCHS) * np.maximum(0, (f - 0.25) / 0.75))),
        (Warmup(Constant(0.4)), lambda t, e, f: 0.4 * np.where(e < 1, 0.1 + 0.9 * e, 1)),
        (LinearScaling(Constant(0.4), 32, 128, 2.0), lambda t, e, f: 0.4 * np.where(e < 2, 1 + 1.5 * e, 4)),
        (LinearScaling(Constant(0.4), 32, 128, 0.0), lambda t, e, f: 1.6 + 0 * t),
        (LinearScaling(Constant(0.4), 32, 8), lambda t, e, f: 0.1 + 0 * t),
        (LinearScaling(Cosine(0.4)), lambda t, e, f: 0.4 * np.cos(np.pi * f / 2) ** 2),
        (Warmup(Cosine(0.4), 2.0, 0.0), lambda t, e, f: 0.4 * np.minimum(e / 2, 1) * (1 + np.cos(np.pi * f)) / 2),
    ],
    ids=lambda part: "" if callable(part) and not hasattr(part, "__dataclass_fields__") else repr(part),
)
def test_every_schedule_is_its_closed_form(schedule, closed_form):
    at = moment()
    np.testing.assert_allclose(schedule(at), closed_form(at.updates, at.epochs, at.fraction), rtol=1e-12, atol=1e-15)


def test_every_schedule_has_a_closed_form_above():
    tested = {
        Adaptive, Constant, InverseTime, InverseScaling, Optimal, Steps, Cosine, Cooldown, Warmup, Backoff,
        LinearScaling,
    }  # fmt: skip
    assert set(SCHEDULES.values()) == tested


@settings(deadline=None)
@given(st.floats(0.1, 0.95), st.sampled_from([0.5, 1.0, 3.0]))
def test_backoff_runs_k_updates_at_g_then_k_over_beta_at_beta_g(beta, stretch):
    """Niu et al. 2011, section 5: the stretches, one by one."""
    schedule, begin, length = Backoff(0.8, beta, stretch), 0.0, stretch
    for number in range(6):
        inside = begin + length * np.array([0.0, 1e-6, 0.5, 1 - 1e-6])
        rates = schedule(Moment(inside * ROWS + 1, inside, inside * 0))
        np.testing.assert_allclose(rates, 0.8 * beta**number, rtol=1e-9)
        begin, length = begin + length, length / beta


def test_backoff_falls_like_one_over_the_updates():
    schedule, epochs = Backoff(1.0, 0.5), np.array([10.0, 100.0, 1_000.0, 10_000.0])
    product = schedule(Moment(epochs, epochs, 0 * epochs)) * epochs
    assert product.max() / product.min() < 2.2  # within one stretch of each other


@pytest.mark.parametrize("schedule", [kind() for kind in SCHEDULES.values() if kind is not Optimal], ids=repr)
def test_with_step_changes_the_step_and_nothing_else(schedule):
    assert step_of(schedule) == "auto"
    changed = with_step(schedule, 0.25)
    assert step_of(changed) == 0.25
    assert with_step(changed, "auto") == schedule
    np.testing.assert_allclose(with_step(schedule, 0.5)(moment()), 2 * changed(moment()))


def test_optimal_needs_no_step():
    assert step_of(Optimal()) is None
    assert with_step(Optimal(0.1, 2.0), 0.5) == Optimal(0.1, 2.0)
    assert step_of(Warmup(Optimal())) is None


def test_warmup_reaches_through_warmup():
    assert step_of(Warmup(Warmup(Cosine(0.5)))) == 0.5
    assert with_step(Warmup(Warmup(Cosine(0.5))), 1.0) == Warmup(Warmup(Cosine(1.0)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        *(
            (lambda kind=kind, step=step: kind(step), "The 'step' parameter must be a positive number or 'auto'")
            for kind in (Constant, InverseTime, InverseScaling, Backoff, Steps, Cosine)
            for step in (0, -1.0, math.nan, math.inf, "large", None)
        ),
        (lambda: InverseTime(1.0, decay=-1), "'decay' parameter must be a number of at least 0. Got -1 instead"),
        (lambda: InverseTime(1.0, decay=math.nan), "'decay' parameter"),
        (lambda: InverseScaling(1.0, power=-1), "'power' parameter must be a number of at least 0. Got -1 instead"),
        (lambda: Optimal(alpha=0), "'alpha' parameter must be a positive number"),
        (lambda: Optimal(alpha=1e-3, t0=0.0), "'t0' parameter must be a positive number"),
        (lambda: Backoff(1.0, beta=1.0), "'beta' parameter must be between 0 and 1"),
        (lambda: Backoff(1.0, beta=0.0), "'beta' parameter"),
        (lambda: Backoff(1.0, epochs=0), "'epochs' parameter must be a positive number"),
        (lambda: Steps(1.0, at=(0.5, 1.5)), "'at' parameter must be fractions between 0 and 1"),
        (lambda: Steps(1.0, factor=0.0), "'factor' parameter must be a positive number"),
        (lambda: Cosine(1.0, floor=-0.1), "'floor' parameter must be between 0 and 1"),
        (lambda: Warmup(epochs=0), "'epochs' parameter must be a positive number"),
        (lambda: LinearScaling(reference=0), "'reference' parameter must be a positive number of samples"),
        (lambda: LinearScaling(total=-1), "'total' parameter must be a positive number of samples"),
        (lambda: LinearScaling(warmup=-1), "'warmup' parameter must be a number of epochs"),
        (lambda: Warmup(start=1.5), "'start' parameter must be between 0 and 1"),
    ],
)
def test_wrong_parameters_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


@pytest.mark.parametrize("name", SCHEDULES)
def test_rates_of_every_schedule_are_positive_and_finite_over_a_whole_run(name):
    schedule = named(name) if name != "optimal" else Optimal(1e-4, 1e4)
    rates = with_step(schedule, 0.5)(moment())
    assert rates.shape == (ROWS * EPOCHS,)
    assert rates.dtype == np.float64
    assert (rates > 0).all()
    assert np.isfinite(rates).all()


# Names with numbers


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("warmup", Warmup()),
        ("warmup:5", Warmup(Constant(), 5)),
        ("warmup:5:0.2", Warmup(Constant(), 5, 0.2)),
        ("warmup:5:cosine", Warmup(Cosine(), 5)),
        ("warmup:0.5:0:Inverse_Time:2", Warmup(InverseTime(decay=2), 0.5, 0)),
        ("warmup:steps", Warmup(Steps())),
        ("cosine:0.1", Cosine(floor=0.1)),
        ("backoff:0.5:2", Backoff(beta=0.5, epochs=2)),
        ("inverse-scaling:0.5", InverseScaling(power=0.5)),
        ("adaptive:2:1e-3", Adaptive(factor=2, least=1e-3)),
        ("linear-scaling:1:2:warmup:3", LinearScaling(Warmup(epochs=3), 1, None, 2)),
    ],
)
def test_numbers_and_another_schedule_may_follow_a_name(text, schedule):
    assert named(text) == schedule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("warmup:5:0.1:3", r"must be 'warmup\[:EPOCHS\]\[:START\]\[:SCHEDULE\]'. Got 'warmup:5:0.1:3' instead"),
        ("warmup:", r"must be 'warmup\[:EPOCHS\]"),
        ("warmup:5:cosin", "Got 'cosin' instead. Did you mean 'cosine'"),
        ("warmup:0", "'schedule' parameter cannot be 'warmup:0': The 'epochs' parameter must be a positive number of"),
        ("warmup:5:2", "'start' parameter must be between 0 and 1. Got 2 instead"),
        ("cosine:low", r"must be 'cosine\[:FLOOR\]'. Got 'cosine:low' instead"),
        ("constant:0.5", "must be 'constant' alone. Got 'constant:0.5' instead"),
    ],
)
def test_a_name_with_wrong_parts_is_refused(text, message):
    with pytest.raises(ParameterError, match=message):
        named(text)


def test_a_schedule_that_modifies_an_adaptive_one_adapts():
    for kind in (Warmup, LinearScaling):
        assert kind(Adaptive(1.0)).needs_stall
        assert kind(Adaptive(1.0)).after_stall() == kind(Adaptive(0.2))
        assert kind(Adaptive(1e-7)).after_stall() is None
        assert not kind(Cosine(1.0)).needs_stall


# Linear scaling of rows: a row is a batch of one


def rows():
    random = np.random.default_rng(0)
    X = random.standard_normal((40, 3)).astype(np.float32)
    return Linear((scipy.sparse.csr_array(X), np.sign(X[:, 0])), l2=1e-4)


@pytest.mark.parametrize(
    ("strategy", "runtime", "samples"),
    [(Serial(), None, 1), (Hogwild(2), None, 1), (Averaging(2), None, 2), (Synchronous(2, 3), Simulator(), 6),
     (LocalSGD(2), Simulator(), 2), (ParameterServer(2), Simulator(), 1)],
    ids=repr,
)  # fmt: skip
def test_the_step_of_rows_grows_with_those_that_are_averaged(strategy, runtime, samples):
    scaled = LinearScaling(Constant(0.05), reference=1, warmup=0.0)
    run = minimise(rows(), "sgd", scaled, strategy, runtime, 2)
    assert run.config["schedule"] == repr(LinearScaling(Constant(0.05), 1, samples, 0.0))
    if runtime is not None or strategy == Serial():  # threads of several workers are not the same twice
        same = minimise(rows(), "sgd", Constant(0.05 * samples), strategy, runtime, 2)
        np.testing.assert_allclose(run.model.weights, same.model.weights, rtol=1e-5)


def test_the_step_is_chosen_for_one_worker_before_it_is_scaled():
    chosen, scaled = (
        minimise(rows(), "sgd", schedule, Averaging(2), budget=2).config["schedule"]
        for schedule in (Constant(), LinearScaling(reference=1, warmup=0.0))
    )
    assert scaled == f"LinearScaling(base={chosen}, reference=1, total=2, warmup=0.0)"


def test_every_record_of_rows_has_its_step():
    run = minimise(rows(), "sgd", with_step(named("warmup:2:0.5"), 0.1), "serial", budget=3)
    assert [record["step"] for record in run.history] == pytest.approx([0.075, 0.1, 0.1])
    assert run.result["step"] == run.history[-1]["step"]


# Optimal, as in scikit-learn


def scikit_learn_steps(loss, alpha, count):
    """The steps that scikit-learn takes, read off weights that only one row each can move."""
    from sklearn.linear_model import SGDClassifier

    y = np.where(np.arange(count) % 2, 1, -1)
    model = SGDClassifier(
        loss=loss, alpha=alpha, max_iter=1, tol=None, shuffle=False, fit_intercept=False, learning_rate="optimal"
    )
    moved = np.abs(model.fit(np.eye(count), y).coef_[0])
    steps = []
    for t in range(count - 1, -1, -1):  # every later row shrinks all weights by 1 - step * alpha
        slope = 1.0 if loss == "hinge" else 0.5
        steps.insert(0, moved[t] / slope)
        moved[:t] /= 1 - steps[0] * alpha
    return np.array(steps)


@pytest.mark.parametrize("alpha", [1e-4, 1e-2])
@pytest.mark.parametrize(("ours", "theirs"), [("hinge", "hinge"), ("logistic", "log_loss")])
def test_optimal_is_that_of_scikit_learn(ours, theirs, alpha):
    random = np.random.default_rng(0)
    X = random.standard_normal((20, 3)).astype(np.float32)
    run = minimise(
        Linear((scipy.sparse.csr_array(X), np.sign(X[:, 0])), ours, l2=alpha), "sgd", "optimal", "serial", budget=1
    )
    schedule = eval(run.config["schedule"], {"Optimal": Optimal})
    updates = np.arange(1, 7, dtype=float)
    np.testing.assert_allclose(
        schedule(Moment(updates, 0 * updates, 0 * updates)), scikit_learn_steps(theirs, alpha, 6), rtol=1e-6
    )


def test_optimal_asks_for_a_penalty():
    X = np.random.default_rng(0).standard_normal((4, 3))  # its loops are compiled for others as well
    with pytest.raises(ParameterError, match="'optimal' is for penalised problems: give l2"):
        minimise(Linear((X, [1, 0, 1, 0]), l2=0), "sgd", "optimal", "serial", budget=1)


# The clock


def test_the_clock_counts_updates_from_the_start_of_the_run():
    clock = StepSizes(InverseScaling(1.0, power=1.0), rows=10, epochs=3)
    whole = clock.rates(0, 30)
    np.testing.assert_array_equal(np.concatenate([clock.rates(0, 7), clock.rates(7, 23)]), whole)
    np.testing.assert_allclose(whole, 1 / np.arange(1, 31), rtol=1e-6)
    assert whole.dtype == np.float32


def test_the_clock_follows_time_where_time_is_what_runs_out():
    assert StepSizes(Cosine(1.0), 10, None, spent=lambda: 0.5).rates(0, 1) == pytest.approx([0.5])
    assert StepSizes(Cosine(1.0), 10, 100, spent=lambda: 1.0).rates(0, 1) == pytest.approx([0], abs=1e-9)
    assert StepSizes(Cosine(1.0), 10, 1, spent=lambda: 0.1).rates(9, 1) == pytest.approx(
        [(1 + np.cos(0.9 * np.pi)) / 2]
    )


def test_the_guards_scale_multiplies_every_step():
    rates = [StepSizes(Backoff(1.0), 10, 5, scale).rates(0, 50) for scale in (1.0, 0.25)]
    np.testing.assert_allclose(rates[1], 0.25 * rates[0], rtol=1e-6)
