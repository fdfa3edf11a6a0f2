"""Serial, term by term, against the same descent in plain NumPy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pytest
import scipy.sparse

import references
from hogwild import Constant, Cosine, Linear, Serial, minimise
from hogwild.data import Chunk, InMemoryDataset
from hogwild.data.csr import NO_VALUES, NO_WEIGHTS
from hogwild.losses import named as loss_named
from hogwild.rules import COORDINATE_RULES
from hogwild.rules import named as rule_named

ROWS, FEATURES, EPOCHS = 150, 24, 2
STEP = {"sgd": 0.05, "momentum": 0.01, "adagrad": 0.2, "ftrl": 0.2, "adam": 0.02}


@dataclass(frozen=True)
class Case:
    """One combination of everything that can be asked of Linear."""

    rule: str = "sgd"
    loss: str = "logistic"
    layout: str = "sparse"
    l1: float = 0.0
    l2: float = 1e-2
    intercept: bool = True
    weighted: bool = False
    balance: bool = False
    classes: int = 2

    def __str__(self):
        return "-".join(f"{value}" for name, value in vars(self).items() if value != getattr(Case, name, None)) or "-"

    @property
    def softly(self):
        return self.loss == "softmax" and self.classes > 2

    @cached_property
    def matrix(self):
        """The rows as a CSR matrix; a few of them are empty, and the last feature is in none."""
        random = np.random.default_rng(0)
        present = random.random((ROWS, FEATURES)) < (1.0 if self.layout == "dense" else 0.3)
        if self.layout != "dense":
            present[::40] = False
            present[:, -1] = False
        values = np.ones((ROWS, FEATURES)) if self.layout == "binary" else random.standard_normal((ROWS, FEATURES))
        return scipy.sparse.csr_array(np.where(present, values, 0).astype(np.float32))

    @cached_property
    def target(self):
        random = np.random.default_rng(1)
        z = self.matrix @ random.standard_normal((FEATURES, self.classes)) + random.standard_normal(self.classes)
        if loss_named(self.loss).targets != "classes":
            return z[:, 0] - z[:, 1]
        return z.argmax(axis=1) if self.classes > 2 else np.where(z[:, 0] > z[:, 1], 1.0, -1.0)

    @cached_property
    def weights(self):
        """What a row weighs by itself, and with the weight of its class (which one against the rest counts apart)."""
        own = np.random.default_rng(2).random(ROWS).astype(np.float32) if self.weighted else np.ones(ROWS, np.float32)
        apart = self.classes > 2 and not self.softly
        return own, own * (np.where(self.target == 1, 3.0, 0.5) if self.balance and not apart else 1.0)

    @cached_property
    def problem(self):
        rows = Linear((self.matrix.toarray() if self.layout == "dense" else self.matrix, self.target, self.weights[0]),
                      "squared").source.rows  # fmt: skip
        rows = replace(rows, weights=rows.weights if self.weighted else NO_WEIGHTS)
        if self.layout == "binary":
            rows = replace(rows, layout="binary", values=NO_VALUES)
        if self.layout == "wide":
            rows = replace(rows, indices=rows.indices.astype(np.uint64))
        others = {float(c): 0.5 for c in np.unique(self.target)}
        return Linear(
            InMemoryDataset(rows, shuffled=True), self.loss, l1=self.l1, l2=self.l2, intercept=self.intercept,
            class_weight=others | {1.0: 3.0} if self.balance else None,
        )  # fmt: skip

    @property
    def scaled(self):
        """Whether one worker has L2 at work on all weights in every term: it is then a factor they have in common."""
        return self.rule == "sgd" and self.classes == 2 and not self.l1 and self.l2 > 0

    def transcribed(self, order, rates, everywhere):
        loss = loss_named(self.loss)
        return references.transcribe(
            self.matrix, self.target, order, rates, self.rule, loss.name, l1=self.l1, l2=self.l2,
            intercept=self.intercept, weights=self.weights[1], parameter=loss.parameter, softly=self.softly,
            classes=self.classes if loss.targets == "classes" else 1,
            class_weights=np.where(np.arange(self.classes) == 1, 3.0, 0.5) if self.balance else 1.0,
            everywhere=everywhere,
        )  # fmt: skip


CASES = [  # some differ from others only in what is not compiled in
    *(Case(rule) for rule in COORDINATE_RULES),
    *(Case(rule, "squared") for rule in (COORDINATE_RULES if references.ALL else ("momentum", "ftrl"))),
    *(Case(rule, "hinge") for rule in (("sgd", "adagrad") if references.ALL else ())),
    *(Case(rule, l1=5e-3, weighted=True, balance=True) for rule in ("adagrad", "ftrl")),
    Case("adagrad", intercept=False),
    Case("adagrad", l2=0.0, layout="binary"),
    Case("adagrad", l2=0.0, layout="binary", intercept=False, weighted=True),
    Case("adagrad", layout="wide"),  # columns numbered with 64 bits
    Case("sgd", "hinge", l2=0.0, layout="dense"),
    Case("sgd", "hinge", l2=0.0, layout="dense", intercept=False, balance=True),
    Case("adagrad", classes=4, weighted=True, balance=True),
    *(
        [Case("sgd", classes=3, l2=0.0, intercept=False), Case("adagrad", "softmax", classes=4)]
        if references.ALL
        else []
    ),
    Case("sgd", "softmax", classes=3, l2=0.0, balance=True),
]
EVERY = pytest.mark.parametrize("case", CASES, ids=str)


def visits(problem, seed, epochs=EPOCHS):
    """The row numbers of some epochs in the order in which they are visited."""
    walks = (problem.data.epoch(seed, number) for number in range(epochs))
    chunks = [walk[k] for walk in walks for k in range(len(walk))]
    starts = [int(np.searchsorted(problem.source.rows.indptr, chunk.rows.indptr[0])) for chunk in chunks]
    assert all(len(chunk.rows) == ROWS for chunk in chunks)  # one chunk, so that its row numbers are the data's
    assert set(starts) == {0}
    return np.concatenate([chunk.order for chunk in chunks])


def cosine(step, count):
    return step * (1 + np.cos(np.pi * np.arange(count) / count)) / 2


STEPWISE = [(case, True) for case in CASES] + [(case, False) for case in CASES if case.scaled]


@pytest.mark.parametrize(("case", "alone"), STEPWISE, ids=str)
def test_every_step_is_that_of_the_transcription(case, alone):
    problem, rule = case.problem, rule_named(case.rule)
    order = visits(problem, seed=0, epochs=1)
    rates = cosine(STEP[case.rule], ROWS).astype(np.float32)
    descend, state, sync = problem.kernel(rule, "free", 1, alone), problem.start(rule), problem.sync_buffer("free")
    rows = problem.data.epoch(0, 0)[0].rows
    for k, (loss, w, b) in enumerate(case.transcribed(order, rates, alone and case.scaled)):
        found = descend(Chunk(rows, order[k : k + 1]), rates[k : k + 1], state, sync)
        assert found == pytest.approx(loss, rel=1e-4, abs=1e-5), f"the loss of term {k}"
        np.testing.assert_allclose(state[0][:, 0].reshape(w.shape), w, rtol=1e-4, atol=1e-5, err_msg=f"after term {k}")
        np.testing.assert_allclose(state[1][:, 0], b, rtol=1e-4, atol=1e-5, err_msg=f"after term {k}")
    assert abs(w).max() > 0.05


@EVERY
def test_a_run_ends_where_the_transcription_does(case):
    schedule = Cosine(STEP[case.rule])
    runs = [minimise(case.problem, case.rule, schedule, Serial(), budget=EPOCHS, seed=seed) for seed in (3, 3, 4)]
    *_, (_, w, b) = case.transcribed(visits(case.problem, 3), cosine(STEP[case.rule], ROWS * EPOCHS), case.scaled)
    np.testing.assert_allclose(runs[0].model.weights, w, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(runs[0].model.intercept, b, rtol=1e-4, atol=1e-5)
    assert runs[0].model.weights.tobytes() == runs[1].model.weights.tobytes()
    assert runs[0].model.intercept.tobytes() == runs[1].model.intercept.tobytes()
    assert runs[0].objective == runs[1].objective
    assert runs[0].model.weights.tobytes() != runs[2].model.weights.tobytes()


@pytest.mark.parametrize("case", [case for case in CASES if case.classes == 2], ids=str)
def test_the_objective_is_the_one_that_is_documented(case):
    run = minimise(case.problem, case.rule, Constant(STEP[case.rule]), Serial(), budget=1)
    loss = loss_named(case.loss)
    expected = references.objective(
        case.matrix, case.target, run.model.weights[:, 0].astype(float), float(run.model.intercept[0]), loss.name,
        l1=case.l1, l2=case.l2, weights=case.weights[1], parameter=loss.parameter,
    )  # fmt: skip
    assert run.objective == pytest.approx(expected, rel=1e-5)


def test_a_common_factor_is_multiplied_into_the_weights_before_it_gets_too_small():
    """Steps so long that a penalty leaves a tenth of all weights at a time."""
    case = Case("sgd", l2=1.0)
    problem, rates = case.problem, np.full(ROWS, 9.0, np.float32)
    order = visits(problem, seed=0, epochs=1)
    descend, state = problem.kernel(rule_named("sgd"), "free", 1), problem.start(rule_named("sgd"))
    descend(Chunk(problem.data.epoch(0, 0)[0].rows, order), rates, state, problem.sync_buffer("free"))
    *_, (_, w, b) = case.transcribed(order, rates, everywhere=True)
    np.testing.assert_allclose(state[0][:, :1], w, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(state[1][:, 0], b, rtol=1e-3)
    assert abs(w).max() > 0.05


def test_softmax_with_two_classes_is_logistic():
    runs = [
        minimise(Case(loss=loss).problem, "sgd", Constant(0.1), Serial(), budget=1) for loss in ("softmax", "logistic")
    ]
    assert runs[0].model.weights.tobytes() == runs[1].model.weights.tobytes()
