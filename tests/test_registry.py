from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hogwild import Linear, losses, minimise, rules, runtimes, schedules, strategies
from hogwild.errors import ParameterError
from hogwild.registry import invalid_parameter, kebab, lookup, quoted_list

REGISTRIES = {
    "loss": losses.LOSSES,
    "rule": rules.RULES,
    "schedule": schedules.SCHEDULES,
    "strategy": strategies.STRATEGIES,
    "runtime": runtimes.RUNTIMES,
}
NAMED = {
    "rule": rules.named,
    "schedule": schedules.named,
    "strategy": strategies.named,
    "runtime": runtimes.named,
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Hogwild", "hogwild"),
        ("RoundRobin", "round-robin"),
        ("InverseTime", "inverse-time"),
        ("AdaGrad", "adagrad"),
        ("FTRL", "ftrl"),
        ("SGD", "sgd"),
        ("LocalSGD", "local-sgd"),
        ("squared_hinge", "squared-hinge"),
        ("already-kebab", "already-kebab"),
    ],
)
def test_class_names_become_command_line_names(name, expected):
    assert kebab(name) == expected


@settings(deadline=None)
@given(st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,20}", fullmatch=True))
def test_a_command_line_name_stays_what_it_is(name):
    once = kebab(name)
    assert kebab(once) == once
    assert once == once.lower()


@pytest.mark.parametrize("kind", REGISTRIES)
def test_registries_are_keyed_by_command_line_names(kind):
    for name in REGISTRIES[kind]:
        assert name == kebab(name)


@pytest.mark.parametrize("kind", NAMED)
def test_every_registered_thing_has_its_name_spelt_in_any_usual_way(kind):
    for name, thing in REGISTRIES[kind].items():
        for spelling in (name, name.upper(), name.replace("-", "_"), name.replace("-", " "), f" {name} "):
            assert type(NAMED[kind](spelling)) is thing
        assert type(NAMED[kind](thing.__name__)) is thing


THINGS = {"rule": rules.SGD(), "schedule": schedules.Cosine(0.5), "strategy": strategies.Serial(),
          "runtime": runtimes.Threads()}  # fmt: skip


@pytest.mark.parametrize("kind", NAMED)
def test_an_object_names_itself(kind):
    assert NAMED[kind](THINGS[kind]) is THINGS[kind]


@pytest.mark.parametrize("kind", NAMED)
def test_what_is_no_such_object_is_refused(kind):
    with pytest.raises(ParameterError, match=f"'{kind}' parameter must be a {kind} such as"):
        NAMED[kind](object())


def test_a_function_of_progress_is_a_schedule():
    X = np.random.default_rng(0).standard_normal((200, 3))
    problem = Linear((X, X @ [1.0, -2.0, 0.5]), "squared")
    run = minimise(problem, "sgd", lambda moment: 0.05 / (1 + moment.epochs), "serial", budget=20)
    assert run.loss < 1e-3


@pytest.mark.parametrize("wrong", [{"init": (1, 2)}, {"average": "half"}, {"callbacks": 5}, {"callbacks": [5]}])
def test_wrong_options_are_refused_in_words(wrong):
    with pytest.raises(ParameterError, match=f"The '{next(iter(wrong))}' parameter must be"):
        minimise(Linear((np.eye(3), [1.0, 2.0, 3.0]), "squared"), budget=1, **wrong)


def test_a_number_is_a_constant_step():
    assert schedules.named(0.5) == schedules.Constant(0.5)


def test_every_loss_has_its_name_spelt_in_any_usual_way():
    for name, loss in losses.LOSSES.items():
        assert losses.named(name) is losses.named(name.replace("-", "_").upper()) is loss


@pytest.mark.parametrize("kind", REGISTRIES)
def test_a_wrong_name_lists_the_right_ones_and_proposes_the_nearest(kind):
    for name in REGISTRIES[kind]:
        wrong = name[:-1] + ("y" if name[-1] == "x" else "x")
        with pytest.raises(ParameterError) as failure:
            lookup(kind, wrong, REGISTRIES[kind])
        message = str(failure.value)
        assert message.startswith(f"The '{kind}' parameter must be one of ")
        assert f"Got '{wrong}' instead. Did you mean '" in message
        assert all(f"'{known}'" in message for known in REGISTRIES[kind])


def test_nothing_is_proposed_where_nothing_is_near():
    assert "Did you mean" not in str(invalid_parameter("rule", "one of 'sgd'", "zzzzzz", ["sgd"]))


@settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="'\\", categories=["L"]), min_size=1), unique=True))
def test_names_are_listed_sorted(names):
    assert re.findall(r"'([^']*)'", quoted_list(names)) == sorted(names)


def test_serial_has_one_worker():
    assert strategies.named("serial", workers=1) == strategies.Serial()
    with pytest.raises(ParameterError, match=r"one worker.*use 'hogwild'"):
        strategies.named("serial", workers=2)


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2", True])
@pytest.mark.parametrize("name", [name for name in strategies.STRATEGIES if name != "serial"])
def test_a_number_of_workers_is_a_positive_integer(name, workers):
    with pytest.raises(ParameterError, match="The 'workers' parameter must be a positive integer"):
        strategies.named(name, workers=workers)
