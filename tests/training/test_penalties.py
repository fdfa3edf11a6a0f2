"""Default penalties, penalties chosen on held-out rows or ratings, and steps that held-out rows judge."""

from __future__ import annotations

import signal
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from hogwild import (
    Budget,
    Constant,
    FactorisationMachine,
    FieldAwareFactorisationMachine,
    Linear,
    MatrixCompletion,
    ParameterServer,
    Run,
    Simulator,
    minimise,
)
from hogwild.data.generate.ratings import GeneratedRatings
from hogwild.data.packing.pack import pack
from hogwild.errors import CheckpointError, ParameterError
from hogwild.problems import problem as problems
from hogwild.rules import Sequential
from hogwild.training import penalty_search, thread_driver

FIELDS = (40, 25, 15, 8)


def clicks(count: int, seed: int = 0) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Rows with one value of each field, frequent or rare, and labels that depend on them and on chance."""
    random = np.random.default_rng(seed)
    offsets = np.cumsum((0, *FIELDS))
    shares = [1 / np.arange(1, size + 1) for size in FIELDS]
    columns = np.stack([random.choice(size, count, p=p / p.sum()) for size, p in zip(FIELDS, shares, strict=True)], 1)
    columns = columns + offsets[:-1]
    weights = np.random.default_rng(7).normal(0, 0.7, offsets[-1])
    labels = np.where(random.random(count) < 1 / (1 + np.exp(-weights[columns].sum(1))), 1, -1)
    ends = np.arange(0, columns.size + 1, len(FIELDS))
    return sparse.csr_matrix((np.ones(columns.size, np.float32), columns.ravel(), ends), (count, offsets[-1])), labels


TRAINING, HELD_OUT = clicks(400), clicks(2_000, seed=1)
FIELD_OF_COLUMN = np.repeat(np.arange(len(FIELDS)), FIELDS)


def held_out_loss(problem, **options) -> float:
    return minimise(problem, strategy="serial", test=HELD_OUT, **options).history[-1]["test_loss"]


def test_the_default_penalty_is_that_of_one_over_the_number_of_rows():
    assert Linear(TRAINING).l2 == 1 / 400
    assert Linear(TRAINING, l1=0.1).l2 == 0
    assert Linear(TRAINING, l2=0).l2 == 0
    assert FactorisationMachine(TRAINING).l2_factors == 0.05
    assert FactorisationMachine(clicks(90_000)).l2_factors == pytest.approx(12 / 300)
    assert FieldAwareFactorisationMachine(TRAINING, fields=FIELD_OF_COLUMN).l2_factors == 0.005


def test_the_default_generalises_better_than_no_penalty():
    how = {"schedule": Constant(1.0), "budget": 200}
    assert held_out_loss(Linear(TRAINING), **how) < held_out_loss(Linear(TRAINING, l2=0), **how) - 0.05


@pytest.mark.parametrize(
    "make",
    [
        Linear,
        FactorisationMachine,
        lambda rows, **how: FieldAwareFactorisationMachine(rows, fields=FIELD_OF_COLUMN, **how),
    ],
    ids=["linear", "fm", "ffm"],
)
def test_a_penalty_is_chosen_on_held_out_rows(make):
    events = []
    run = minimise(make(TRAINING, l2="auto"), strategy="serial", test=HELD_OUT, budget=40, callbacks=[events.append])
    (chosen,) = [event for event in events if event["event"] == "penalty chosen"]
    assert run.config["l2"] == chosen["penalties"]["l2"] > 0
    losses = [loss for _, loss in chosen["path"]]
    best = chosen["path"][int(np.argmin(losses))][0]
    assert run.config["l2"] == pytest.approx(best / 400)
    assert run.history[-1]["test_loss"] < held_out_loss(make(TRAINING), budget=40) + 0.01


def test_without_held_out_data_a_tenth_of_the_rows_judges_and_all_are_trained_on():
    run = minimise(Linear(TRAINING, l2="auto"), strategy="serial", budget=8)
    assert run.history[-1]["updates"] == 8 * 400
    assert "test_loss" not in run.history[-1]


RATINGS, HELD_OUT_RATINGS = GeneratedRatings(200, 150, 5_000, rank=3).data.split(0.2, 0)


@pytest.mark.parametrize(("loss", "usual"), [("squared", 0.07), ("bpr", 0.01)])
def test_the_penalty_of_ratings_is_chosen_on_held_out_ratings(loss, usual):
    problems = {l2: MatrixCompletion(RATINGS, rank=8, loss=loss, l2=l2) for l2 in ("auto", None, 0)}
    assert problems[None].l2 == usual
    run, *others = (minimise(problem, strategy="serial", test=HELD_OUT_RATINGS) for problem in problems.values())
    (chosen,) = [event for event in run.events if event["event"] == "penalty chosen"]
    strengths, losses = zip(*chosen["path"], strict=True)
    assert strengths[:3] == (100, 30, 10)
    assert run.config["l2"] == chosen["penalties"]["l2"] == pytest.approx(strengths[np.argmin(losses)] * usual)
    # A trial is a run of the same length, so the loss that it promised is that of the run, and no other is lower.
    assert run.history[-1]["test_loss"] == pytest.approx(min(losses), rel=1e-6)
    assert all(run.history[-1]["test_loss"] <= other.history[-1]["test_loss"] + 0.002 for other in others)


def test_ratings_that_determine_their_factors_get_a_weak_penalty_and_noise_a_strong_one():
    chosen = {}
    for noise in (0.05, 3.0):
        ratings = GeneratedRatings(200, 150, 5_000, rank=3, noise=noise, stars=False).data
        run = minimise(MatrixCompletion(ratings, rank=8, l2="auto"), strategy="serial")
        chosen[noise] = run.config["l2"]
        assert run.history[-1]["updates"] == 20 * 5_000  # a tenth judged; the run has all of them
        assert "test_loss" not in run.history[-1]
    assert chosen[0.05] < 0.07 < chosen[3.0]


def test_ratings_that_are_held_out_have_the_numbers_of_all_users_and_items():
    problem, held_out = MatrixCompletion(RATINGS, rank=8, loss="bpr", l2="auto", nonnegative=True).split(0.1, 0)
    assert (problem.ratings.n_rows, held_out.n_rows) == (3_600, 400)
    assert problem.ratings.users is held_out.users is RATINGS.users
    assert (problem.rank, problem.loss, problem.nonnegative, problem.searches_penalty) == (8, "bpr", True, False)


def test_a_penalty_is_chosen_for_a_run_by_messages_too():
    run = minimise(Linear(TRAINING, l2="auto"), strategy=ParameterServer(2), runtime=Simulator(), budget=8)
    assert run.config["l2"] > 0


@pytest.fixture
def jobs(monkeypatch):
    """The jobs that are run on threads, trials included, and a way to press Ctrl-C in one of them."""
    seen, presses, run = [], {}, thread_driver.run

    def watched(job):
        def press(event):
            if event["event"] == presses.get(number):
                del presses[number]
                signal.raise_signal(signal.SIGINT)

        number = len(seen)
        seen.append(job)
        return run(replace(job, options=replace(job.options, callbacks=(*job.options.callbacks, press))))

    monkeypatch.setattr(thread_driver, "run", watched)
    return SimpleNamespace(seen=seen, press=presses.__setitem__)


# Within the third trial, or after the last epoch of the second one, which has ended by itself then.
@pytest.mark.parametrize(("trial", "event"), [(2, "progress"), (1, "result")])
@pytest.mark.parametrize("test", [HELD_OUT, None], ids=["test", "split"])
def test_ctrl_c_ends_the_search_and_the_run_with_the_best_model(jobs, tmp_path, trial, event, test):
    heard, parameters = [], []

    def hear(event):
        heard.append(event["event"])
        if event["event"] in ("epoch", "result"):
            parameters.append(event.parameters)

    jobs.press(trial, event)
    run = minimise(
        Linear(TRAINING, l2="auto"), strategy="serial", test=test, budget=40, callbacks=[hear], folder=tmp_path / "run",
        checkpoint=True,
    )  # fmt: skip
    assert run.stop_reason == run.result["stop_reason"] == "interrupted"
    assert len(jobs.seen) == trial + 1
    assert heard == ["penalty chosen", "started", "epoch", "result"]
    assert run.events[0]["penalties"]["l2"] == run.config["l2"]
    losses = dict(run.events[0]["path"])
    assert [*losses] == [100, 30]  # the trial that was cut short is not judged
    assert run.result["test_loss"] == min(losses.values())
    assert run.config["l2"] == pytest.approx(min(losses, key=losses.get) / (400 if test else 360))
    assert (parameters[-1][0].ravel() == run.model.weights.ravel()).all()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    loaded = Run.load(tmp_path / "run")
    assert loaded.stop_reason == "interrupted"
    assert (loaded.model.weights == run.model.weights).all()
    assert not (tmp_path / "run" / "checkpoints").exists()  # A resumed run searches anew.


def test_ctrl_c_in_the_first_trial_leaves_the_model_of_that_moment(jobs):
    jobs.press(0, "progress")
    run = minimise(Linear(TRAINING, l2="auto"), strategy="serial", test=HELD_OUT, budget=40)
    assert run.stop_reason == "interrupted"
    assert len(jobs.seen) == 1
    assert 0 < run.history[-1]["updates"] < 5 * 400


def test_a_budget_in_seconds_is_for_the_search_and_the_run(jobs):
    run = minimise(Linear(TRAINING, l2="auto"), strategy="serial", test=HELD_OUT, budget=Budget(seconds=0.9))
    *trials, last = (job.budget for job in jobs.seen)
    assert len(trials) > 1
    assert {trial.seconds for trial in trials} == {0.9 / 2 / 9}
    (chosen,) = [event for event in run.events if event["event"] == "penalty chosen"]
    assert chosen["seconds"] > 0
    assert last.seconds == max(0.9 - chosen["seconds"], 0.09)


def test_simulated_seconds_are_for_the_run(jobs):
    run = minimise(
        Linear(TRAINING, l2="auto"), strategy=ParameterServer(2), runtime=Simulator(), budget=Budget(seconds=0.5)
    )
    assert all(job.budget.seconds is None and job.budget.epochs for job in jobs.seen)
    assert run.stop_reason == "seconds"
    assert "seconds=0.5" in next(event for event in run.events if event["event"] == "started")["budget"]


@pytest.mark.parametrize("test", [HELD_OUT, None], ids=["test", "split"])
def test_a_penalty_on_factors_that_is_given_stays(jobs, test):
    problem = FactorisationMachine(TRAINING, l2="auto", l2_factors=0.1)
    run = minimise(problem, strategy="serial", test=test, budget=3)
    *trials, _ = (job.problem for job in jobs.seen)
    assert len({trial.l2 for trial in trials}) == len(trials) > 1
    assert {trial.l2_factors for trial in trials} == {run.config["l2_factors"]} == {0.1}
    others = FactorisationMachine(TRAINING, l2="auto").split(0.1, 0)[0]
    assert others.with_penalty(3).l2_factors == pytest.approx(3 * 0.05)


class KilledError(Exception):
    """An end that leaves no time for anything."""


@pytest.mark.parametrize(
    "how", [{"strategy": "serial"}, {"strategy": ParameterServer(2, staleness=0), "runtime": Simulator()}],
    ids=["threads", "messages"],
)  # fmt: skip
def test_a_resumed_run_has_the_penalty_that_was_chosen(tmp_path, monkeypatch, how):
    def kill(event):
        if event["event"] == "checkpoint" and event["epoch"] == 3:
            raise KilledError

    def again(**more):
        return minimise(Linear(TRAINING, l2="auto"), schedule=Constant(0.5), budget=8, **how, **more)

    whole = again()
    with pytest.raises(KilledError):  # There is nothing to resume yet: it begins.
        again(checkpoint=tmp_path, resume=True, callbacks=[kill])
    monkeypatch.delattr(penalty_search, "choose_penalty")
    run = again(checkpoint=tmp_path, resume=True)
    assert [event["epoch"] for event in run.events if event["event"] == "resumed"] == [3]
    assert run.config["l2"] == whole.config["l2"]
    assert (run.model.weights == whole.model.weights).all()
    with pytest.raises(CheckpointError, match="belongs to another run: data was"):
        minimise(Linear(clicks(400, seed=3), l2="auto"), checkpoint=tmp_path, resume=True, **how)
    (tmp_path / "penalty.json").write_text("{}")
    with pytest.raises(CheckpointError, match="penalty cannot be read"):
        again(checkpoint=tmp_path, resume=True)


def test_a_checkpoint_without_a_search_says_which_penalty_to_give(tmp_path):
    how = {"strategy": "serial", "checkpoint": tmp_path}
    minimise(Linear(TRAINING, l2=1 / 3e4), budget=2, **how)
    with pytest.raises(CheckpointError, match=r"\(l2=3.3333333333333335e-05\)"):
        minimise(Linear(TRAINING, l2="auto"), budget=4, resume=True, **how)


def test_a_rule_that_keeps_columns_as_they_are_keeps_the_search():
    far = (np.random.default_rng(0).standard_normal((50, 3)) + 100, np.repeat([1, -1], 25))
    problem = Linear(far, l2="auto")
    assert problem.frame is not None
    assert problem.for_rule(Sequential()).searches_penalty


@pytest.mark.parametrize("l2", [-1, "much", float("inf"), True])
def test_other_penalties_are_refused(l2):
    with pytest.raises(ParameterError, match="l2"):
        Linear(TRAINING, l2=l2)
    with pytest.raises(ParameterError, match="l2"):
        MatrixCompletion(RATINGS, l2=l2)


def test_the_default_penalty_is_that_of_ridge_and_zero_switches_it_off():
    """A column of small values needs a large weight, which the default shrinks as documented: by v / (v + 1/n)."""
    x = np.where(np.arange(400) % 2, 1, -1) / 20.0  # a variance of 1/n: the weight is halved
    beside = np.where(np.arange(400) % 4 < 2, 1.0, -1.0)  # independent of x, and as large as the default expects
    rows, how = (np.stack([x, beside], axis=1), 3 * x), {"strategy": "serial", "budget": 200}
    assert minimise(Linear(rows, "squared"), **how).model.weights[0, 0] == pytest.approx(1.5, rel=0.01)
    assert minimise(Linear(rows, "squared", l2=0), **how).model.weights[0, 0] == pytest.approx(3, rel=0.01)
    # Where no column is larger, the default is that of the same column in another unit: by v / (v + v/n).
    alone = x[:, None], 3 * x
    assert minimise(Linear(alone, "squared"), **how).model.weights[0, 0] == pytest.approx(3, rel=0.01)


def topics(count: int, seed: int) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Rows of 25 words as counts, scaled to length one; a fifth of the words tell the two topics apart."""
    random = np.random.default_rng(seed)
    labels = np.where(random.random(count) < 0.5, 1, -1)
    told = (random.random((count, 25)) < 0.2) * np.where(labels > 0, 100, 200)[:, None]
    words = sparse.coo_array(
        (np.ones(count * 25), (np.repeat(np.arange(count), 25), (random.integers(0, 100, (count, 25)) + told).ravel())),
        (count, 300),
    ).tocsr()  # fmt: skip
    lengths = np.sqrt(words.multiply(words).sum(axis=1))
    return sparse.csr_matrix(words.multiply(1 / np.asarray(lengths).reshape(-1, 1)), dtype=np.float32), labels


def test_the_default_penalty_of_short_rows_leaves_scores_their_size():
    training, other = topics(400, 0), topics(2_000, 1)
    assert Linear(training).l2 == Linear(training, "softmax").l2 == FactorisationMachine(training).l2 == 1 / (16 * 400)
    assert Linear(training, "hinge").l2 == Linear(training, "squared").l2 == 1 / 400  # a margin of 1 suffices them
    losses = [
        minimise(Linear(training, l2=l2), strategy="serial", test=other, budget=50).history[-1]["test_loss"]
        for l2 in (None, 1 / 400)
    ]
    assert losses[0] < losses[1] - 0.05


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_the_default_penalty_follows_the_unit_of_small_values_but_not_of_large_ones(loss):
    X, y = topics(400, 0)
    usual = Linear((X, y), loss).l2
    assert Linear((X / 8, y), loss).l2 == pytest.approx(usual / 64, rel=0.01)
    assert Linear((1000 * X, y), loss).l2 == 1 / 400
    # A value of one in each of few columns is no small value, however short the rows are. Zeros do not count.
    assert Linear(TRAINING, loss).l2 == Linear((TRAINING[0].toarray(), TRAINING[1]), loss).l2 == 1 / 400
    scaled = TRAINING[0] / 2, TRAINING[1]
    assert Linear(scaled, loss).l2 == (1 / 4 if loss == "logistic" else 1) / 400


def test_the_default_penalty_is_the_same_for_packed_rows(tmp_path):
    X, y = topics(400, 0)
    X.data *= np.random.default_rng(0).random(len(X.data), np.float32)
    dump_svmlight_file(X, y, str(tmp_path / "topics.svm"), zero_based=False)
    pack([tmp_path / "topics.svm"], tmp_path / "topics.packed")
    packed = Linear(tmp_path / "topics.packed")
    assert packed.l2 == Linear((X, y)).l2 < 1 / (16 * 400)
    assert packed.with_penalty(3).l2 == pytest.approx(3 * packed.l2)


def test_the_default_penalty_of_many_rows_is_that_of_a_sample(monkeypatch):
    X, y = topics(400, 0)
    X.data *= np.random.default_rng(0).random(len(X.data), np.float32)
    whole = Linear((X, y)).l2
    monkeypatch.setattr(problems, "SAMPLED_ROWS", 50)
    assert whole != Linear((X, y)).l2 == pytest.approx(whole, rel=0.2)
    assert Linear((X, y)).l2 == Linear((X, y)).l2
    monkeypatch.setattr(problems, "subsample", None)  # No row is read for a penalty that is given.
    assert Linear((X, y), l2=0.5).l2 == FactorisationMachine((X, y), l2=0.5).l2 == 0.5


def test_the_default_penalty_of_rows_without_values_is_one_over_their_number():
    assert Linear((np.zeros((4, 3)), [1, -1, 1, -1])).l2 == 1 / 4
    assert Linear((sparse.csr_matrix((4, 3), dtype=np.float32), [1, -1, 1, -1])).l2 == 1 / 4


def separable(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows with more columns than rows: some weights separate any labels, which are mostly chance."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((count, 60))
    return X, np.where(X[:, 0] + 2 * random.standard_normal(count) > 0, 1, -1)


def test_a_step_is_judged_by_the_held_out_rows():
    training, other = separable(50, 0), separable(500, 1)
    blind = minimise(Linear(training, l2=0), strategy="serial", budget=200)
    judged = minimise(Linear(training, l2=0), strategy="serial", budget=200, test=other)
    steps = [next(event["step"] for event in run.events if event["event"] == "step chosen") for run in (blind, judged)]
    assert steps[1] < steps[0] / 4


def test_a_held_out_loss_that_rose_is_said():
    training, other = separable(50, 0), separable(500, 1)
    run = minimise(Linear(training, l2=0), schedule=Constant(5.0), strategy="serial", budget=50, test=other)
    (event,) = [event for event in run.events if event["event"] == "loss rose"]
    assert event["start"] == pytest.approx(np.log(2), rel=1e-3)
    assert event["end"] == run.history[-1]["test_loss"] > event["start"]
    calm = minimise(Linear(TRAINING), strategy="serial", budget=10, test=HELD_OUT)
    assert not [event for event in calm.events if event["event"] == "loss rose"]
