"""Losses, schedules, rules and strategies of the user's: those that fit are taken, others are told what is wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier, SGDRegressor

import hogwild
from hogwild import HogwildClassifier, HogwildRecommender, HogwildRegressor, Linear, MatrixCompletion, minimise
from hogwild.errors import ParameterError
from hogwild.jit import bind
from hogwild.losses import LOSSES, named, own
from hogwild.rules import Rule
from hogwild.strategies import Strategy

X = np.random.default_rng(0).standard_normal((40, 3))
Y = np.sign(X @ [1.0, -1.0, 0.5])


def hinge(z: float, y: float) -> tuple[float, float]:
    return (1.0 - z * y, -y) if z * y < 1.0 else (0.0, 0.0)


# Losses


@pytest.mark.parametrize(
    ("labels", "targets", "figure"),
    [(Y, "any", "accuracy"), ((Y + 1) / 2, "any", "r2"), ((Y + 1) / 2, "classes", "accuracy"), (Y, "real", "r2")],
)
def test_labels_decide_which_figure_a_loss_of_ones_own_has(labels: Any, targets: Any, figure: str) -> None:
    problem = Linear((X, labels), loss=hinge if targets == "any" else own(hinge, targets))
    assert problem.labels.classes is None if figure == "r2" else problem.labels.classes is not None
    assert figure in problem.metrics(np.array([1.0, 2.0, 1.0, 1.0, 2.0, 2.0]))


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (lambda z: (z, 1.0), r"'loss' .* function \(z, y\) -> \(loss, derivative\). Got <lambda>\(z\)"),
        (lambda z, y: (z - y) ** 2, r"returns two numbers.* it returns 0.25"),
        (lambda z, y: (np.array([z, y]), 1.0), "returns two numbers"),
        (lambda z, y: (z.shape, 1.0), r"loss lambda fails for the score 0.5 and the label 1.0: .*shape"),
    ],
)
def test_losses_that_cannot_work(loss: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        Linear((X, Y), loss=loss)


def checked(z: float) -> float:
    if z > 10.0:
        raise ValueError("z is too large")
    return z


def raising(z: float, y: float) -> tuple[float, float]:
    if z > 10.0:
        raise ValueError("z is too large")
    return 0.5 * (z - y) ** 2, z - y


def asserting(z: float, y: float) -> tuple[float, float]:
    assert z < 10.0
    return 0.5 * (z - y) ** 2, z - y


def calling(z: float, y: float) -> tuple[float, float]:
    return 0.5 * (z - y) ** 2, checked(z) - y


def closing(part: Any) -> Any:
    return lambda z, y: (0.5 * (z - y) ** 2, part(z) - y)


RAISING = [raising, asserting, calling, closing(checked), closing(numba.njit(checked)), numba.njit(raising)]


@pytest.mark.parametrize("loss", RAISING)
def test_losses_that_raise_are_refused(loss: Any) -> None:
    """A compiled one would leave a lock or a turn behind, for which other workers would wait for ever."""
    with pytest.raises(ParameterError, match=r"raises an exception .* Return nan instead"):
        Linear((X, Y), loss=loss)


def test_a_loss_object_that_raises_is_refused() -> None:
    with pytest.raises(ParameterError, match="The loss mine raises an exception"):
        hogwild.losses.Loss("mine", lambda z, y, parameter: (checked(z), 1.0), "real")


def test_a_loss_may_read_an_attribute_with_the_name_of_a_function_that_raises() -> None:
    template = bind(lambda z, y: (math.log(1.0 + z * z), 2.0 * z / (1.0 + z * z)), log=checked)
    assert own(template)(0.0, 1.0) == (0.0, 0.0)


def beyond_the_end(z: float, y: float) -> tuple[float, float]:
    slopes = [z - y]
    return 0.5 * (z - y) ** 2, slopes[7 if abs(z) > 0.5 else 0]


def not_a_number(z: float, y: float) -> tuple[float, float]:
    return (0.5 * (z - y) ** 2, z - y) if abs(z) <= 0.5 else (math.nan, math.nan)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("strategy", ["serial", hogwild.Locked(2), hogwild.RoundRobin(2)], ids=str)
@pytest.mark.parametrize("loss", [beyond_the_end, not_a_number])
def test_a_loss_that_fails_in_training_ends_the_run(loss: Any, strategy: Any) -> None:
    y = X @ [1.0, -2.0, 0.5]
    with pytest.raises(hogwild.errors.DivergedError, match="The loss exploded"):
        minimise(Linear((X, y), loss=own(loss, "real")), "sgd", 0.5, strategy, budget=50)


def truth(z: float, y: float) -> tuple[float, bool]:
    return abs(z - y), z > y


def whole(z: float, y: float) -> tuple[int, int]:
    return 0, 1 if z > y else -1


def as_list(z: float, y: float) -> list[float]:
    return [0.5 * (z - y) ** 2, z - y]


def in_32_bits(z: float, y: float) -> tuple[Any, Any]:
    return np.float32(0.5 * (z - y) ** 2), np.float32(z - y)


@pytest.mark.parametrize("loss", [truth, whole, as_list, in_32_bits])
def test_a_loss_may_return_any_two_numbers(loss: Any) -> None:
    run = minimise(Linear((X, X @ [1.0, -2.0, 0.5]), loss=own(loss, "real")), "sgd", 0.01, "serial", budget=1)
    assert np.isfinite(run.result["loss"])


def test_targets_that_are_none() -> None:
    with pytest.raises(ParameterError, match="'targets' parameter must be one of"):
        own(hinge, "labels")  # type: ignore[arg-type]


THEIRS = sorted(
    {name for kind in (SGDClassifier, SGDRegressor) for name in kind._parameter_constraints["loss"][0].options}
)


@pytest.mark.parametrize("name", THEIRS)
def test_names_of_scikit_learn_are_names_everywhere(name: str) -> None:
    assert named(name).name in LOSSES
    assert hogwild.FactorisationMachine((X, Y), loss=name).loss == Linear((X, Y), loss=name).loss == named(name)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=str)
def test_our_names_are_names_of_the_estimators(loss: Any) -> None:
    kind = HogwildClassifier if loss.targets == "classes" else HogwildRegressor
    model = kind(loss=loss.name, max_iter=1, tol=None, random_state=0)
    model._validate_params()  # a fit would compile, and comes after this


def test_two_names_of_one_loss_give_one_fit() -> None:
    one, other = (
        HogwildClassifier(loss=name, random_state=0, max_iter=5, tol=None) for name in ("log_loss", "logistic")
    )
    assert one.fit(X, Y).coef_.tolist() == other.fit(X, Y).coef_.tolist()
    assert one.predict_proba(X).tolist() == other.predict_proba(X).tolist()


def test_squared_errors_of_ratings() -> None:
    ratings = (np.array([0, 1, 0]), np.array([0, 0, 1]), np.array([1.0, 2.0, 3.0]))
    assert MatrixCompletion(ratings, 2, loss="squared_error").loss == "squared"
    assert HogwildRecommender(2, loss="squared_error", max_iter=2, random_state=0).fit(ratings).score(ratings) < 0


def test_an_unknown_name_is_told_with_a_similar_one() -> None:
    with pytest.raises(ParameterError, match="Did you mean 'log-loss'"):
        named("log_los")


# Schedules


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        (lambda: 0.1, r"function \(moment\) -> steps. Got <lambda>\(\)"),
        (lambda moment: "0.1", r"a positive number for each update of a stretch, or one for all. Got '0.1'"),
        (lambda moment: [0.1, 0.2, 0.3], "for each update of a stretch, or one for all. Got"),
        (lambda epoch: 0.1 / (1 + epoch), r"moment.updates, moment.epochs and moment.fraction are arrays .* TypeError"),
        (lambda moment: -moment.epochs, "that are not negative"),
        (hogwild.Cosine, r"Got the class Cosine: write Cosine\(...\)"),
    ],
)
def test_schedules_that_cannot_work(schedule: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        minimise(Linear((X, Y)), "sgd", schedule, "serial", budget=1)


@dataclass(frozen=True)
class Staircase(hogwild.schedules.Schedule):
    height: float

    def __call__(self, moment: Any) -> Any:
        return self.height / (1 + np.floor(moment.epochs))


def test_a_schedule_of_ones_own() -> None:
    for schedule in (Staircase(0.5), lambda moment: 0.5 / (1 + np.floor(moment.epochs))):
        run = minimise(Linear((X, Y)), "sgd", schedule, "serial", budget=3)
        assert [record["step"] for record in run.history] == [0.25, 0.5 / 3, 0.125]
    with pytest.raises(ParameterError, match="The schedule Staircase must be"):
        minimise(Linear((X, Y)), "sgd", Staircase("high"), "serial", budget=1)  # type: ignore[arg-type]


# Rules


def step(state: Any, p: Any, g: Any, rate: Any, l1: Any, l2: Any, constants: Any) -> None:
    state[p, 0] -= rate * g


def rule_of(what: Any = step, **members: Any) -> Rule:
    body = {"initial": (0.0,), "step": staticmethod(what), **members}
    found: Rule = dataclass(frozen=True)(type("Mine", (Rule,), body))()
    return found


def nothing(state: Any, p: Any, g: Any, rate: Any, l1: Any, l2: Any, constants: Any) -> float:
    return float(state[p, 0] - rate * g)


def everywhere(state: Any, p: Any, g: Any, rate: Any, l1: Any, l2: Any, constants: Any) -> None:
    state[:, 0] -= rate * g


def step_if_finite(state: Any, p: Any, g: Any, rate: Any, l1: Any, l2: Any, constants: Any) -> None:
    assert g == g
    state[p, 0] -= rate * g


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (rule_of(step_if_finite), "rule Mine raises an exception .* Set the value to nan instead"),
        (rule_of(lambda w, g: w - g), r"step\(state, p, g, rate, l1, l2, constants\). Got <lambda>\(w, g\)"),
        (rule_of(nothing), "must change row p of the state in place"),
        (rule_of(everywhere), "must change row p of the state alone"),
        (rule_of(lambda state, p, g, rate, l1, l2, constants: state.p), "rule Mine fails in step.*AttributeError"),
        (rule_of(initial=0.0), "'initial' of the rule Mine must be a tuple"),
        (rule_of(constants=()), "'constants' of the rule Mine must be a tuple"),
        (hogwild.SGD, r"Got the class SGD: write SGD\(...\)"),
    ],
)
def test_rules_that_cannot_work(rule: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        minimise(Linear((X, Y)), rule, 0.1, "serial", budget=1)


def test_a_rule_of_ones_own_is_taken() -> None:
    rule = rule_of()
    assert hogwild.rules.named(rule) is rule


# Strategies


def strategy_of(**members: Any) -> Strategy:
    body = {"__annotations__": {"workers": "int | None"}, "workers": None, **members}
    found: Strategy = dataclass(frozen=True)(type("Mine", (Strategy,), body))()
    return found


class Plain(Strategy):
    shares_memory = True


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        (strategy_of(), "does not say how its workers share the parameters: set shares_memory = True"),
        (strategy_of(passes_messages=True), r"has to define roles\(self, config\)"),
        (
            strategy_of(shares_memory=True, access="lock"),
            "'access' of the strategy Mine must be one of 'free', 'locked'",
        ),
        (Plain(), r"must be a data class: write @dataclass\(frozen=True\)"),
        (hogwild.Hogwild, r"Got the class Hogwild: write Hogwild\(...\)"),
    ],
)
def test_strategies_that_cannot_work(strategy: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        minimise(Linear((X, Y)), "sgd", 0.1, strategy, budget=1)


@pytest.mark.parametrize("seed", ["a", -1, 0.5, None])
def test_seeds_that_are_none(seed: Any) -> None:
    with pytest.raises(ParameterError, match="'seed' parameter must be a whole number of at least 0"):
        minimise(Linear((X, Y)), "sgd", 0.1, "serial", budget=1, seed=seed)


def test_a_class_of_a_runtime() -> None:
    with pytest.raises(ParameterError, match=r"Got the class Threads: write Threads\(...\)"):
        minimise(Linear((X, Y)), runtime=hogwild.Threads)  # type: ignore[arg-type]


def test_a_strategy_of_ones_own_is_taken() -> None:
    strategy = strategy_of(shares_memory=True, access="locked")
    assert hogwild.strategies.named(strategy) is strategy


# Budgets


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"monitor": "f1"}, "a held-out figure such as 'test_f1'"),
        ({"monitor": "test_f1"}, "say whether it should rise or fall: mode='max' or mode='min'"),
        ({"monitor": "test_f1", "mode": "up"}, "'mode' parameter must be 'min' or 'max'"),
        ({"monitor": "test_accuracy", "mode": "min"}, "'mode' parameter must be 'max'"),
        ({"mode": "max"}, "'mode' parameter must be 'min'"),
    ],
)
def test_figures_that_cannot_be_monitored(budget: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        hogwild.Budget(**budget)


@pytest.mark.parametrize(
    ("budget", "test", "said"),
    [
        ({"monitor": "test_f1", "mode": "max", "patience": 2}, None, "give test data"),
        ({"monitor": "test_f1", "mode": "max"}, (X, Y), "for nothing: give it patience, a tolerance or a window"),
        ({"monitor": "test_f1", "mode": "max", "patience": 2}, (X, Y), "have test_loss, test_accuracy: monitor one of"),
        ({"monitor": "test_f1", "mode": "max", "tolerance": 0.1}, (X, Y), "have test_loss, test_accuracy"),
    ],
)
def test_runs_without_the_figure(budget: Any, test: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        minimise(Linear((X, Y)), "sgd", 0.1, "serial", budget=hogwild.Budget(epochs=2, **budget), test=test)


@pytest.mark.parametrize("where", [{}, {"strategy": hogwild.LocalSGD(2), "runtime": hogwild.Simulator()}])
def test_patience_waits_for_the_monitored_figure(where: Any) -> None:
    """The accuracy does not rise above 1, while the loss goes on falling."""
    budget = hogwild.Budget(epochs=60, patience=4, monitor="test_accuracy")
    run = minimise(Linear((X, Y)), "sgd", 0.5, **{"strategy": "serial", **where}, budget=budget, test=(X, Y))
    best = max(record["test_accuracy"] for record in run.history)
    assert run.stop_reason == "patience"
    assert run.result["test_accuracy"] == best
    assert run.history[-1]["epoch"] < 60
    first = next(record["epoch"] for record in run.history if record["test_accuracy"] == best)
    assert run.result["epoch"] == first == run.history[-1]["epoch"] - 4
