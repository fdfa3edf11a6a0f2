"""Forecasts of time: from work like that of trials, corrected by trials that have ended. All clocks are made up."""

from __future__ import annotations

import pytest

from hogwild import machine
from hogwild.cli import main
from hogwild.lab import runner
from hogwild.lab.experiment import Experiment, grid
from hogwild.lab.forecast import Forecast, in_words, relative_time, seconds_left_of_all
from hogwild.lab.runner import Progress, Study


class Clock:
    """Clock that moves only when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def work(self, *seconds: float):
        durations = iter(seconds)

        def task() -> None:
            self.now += next(durations)

        return task


def never(point, seed):
    raise AssertionError("no trial is to be run")


def nothing(results):
    return [], []


def experiment(**more) -> Experiment:
    usual = {"points": grid(x=[1, 2, 3, 4]), "quick": grid(x=[1]), "seconds": (40.0, 5.0), "seeds": (2, 1)}
    return Experiment("made-up", "", "", "", trial=never, read=nothing, **(usual | more))


@pytest.fixture
def cores(monkeypatch):
    monkeypatch.setattr(runner, "START_SECONDS", 0.0)

    def set_to(number: int) -> None:
        monkeypatch.setattr(machine, "usable_cores", lambda: number)

    return set_to


def test_the_pace_is_the_best_of_each_kind_of_work():
    clock = Clock()
    python, compiled = clock.work(9.0, 2.0, 4.0), clock.work(9.0, 5.0, 3.0)  # the first call of each is not timed
    assert relative_time([(python, 1.0), (compiled, 1.0)], clock, repeats=2) == 2.5


def test_half_as_fast_a_machine_is_forecast_to_take_twice_as_long(tmp_path, cores, monkeypatch):
    cores(2)
    study = Study(experiment(), "made-up", tmp_path / "x.jsonl")
    monkeypatch.setattr(runner, "pace", lambda: 1.0)
    assert study.expected == study.duration == pytest.approx(40.0)
    monkeypatch.setattr(runner, "pace", lambda: 2.0)
    assert study.expected == pytest.approx(80.0)


@pytest.mark.parametrize(("timed", "number", "expected"), [
    (False, 2, 40.0), (False, 4, 20.0), (False, 16, 10.0),  # no more than 8 trials run at the same time, 10 s each
    (True, 2, 40.0), (True, 16, 40.0),
    (lambda point: point["x"] == 1, 2, 40.0),  # 2 alone and 6 together: each 8 s
    (lambda point: point["x"] == 1, 16, 24.0),
])  # fmt: skip
def test_cores_help_only_trials_that_are_not_timed(timed, number, expected, tmp_path, cores, monkeypatch):
    monkeypatch.setattr(runner, "pace", lambda: 1.0)
    cores(number)
    assert Study(experiment(timed=timed), "made-up", tmp_path / "x.jsonl").expected == pytest.approx(expected)


def test_fewer_seeds_take_less_time(tmp_path, cores, monkeypatch):
    monkeypatch.setattr(runner, "pace", lambda: 1.0)
    cores(2)
    assert Study(experiment(), "made-up", tmp_path / "x.jsonl", seeds=1).expected == pytest.approx(20.0)


def test_starting_processes_takes_time_on_any_number_of_cores(tmp_path, cores, monkeypatch):
    monkeypatch.setattr(runner, "pace", lambda: 1.0)
    cores(16)
    monkeypatch.setattr(runner, "START_SECONDS", 7.0)
    assert Study(experiment(), "made-up", tmp_path / "x.jsonl").expected == pytest.approx(17.0)


@pytest.mark.parametrize("off", [0.1, 1.0, 9.0])
def test_a_forecast_that_was_wrong_converges(off):
    """Trials of two kinds take ``off`` times as long as usual: after one of each, the forecast is right."""
    durations = {"a": 1.0 * off, "b": 3.0 * off}
    forecast = Forecast(usual=2.0, slots=1)
    order = ["a", "b"] * 10
    for setting in order:
        forecast.add(setting)
    for done, setting in enumerate(order, 1):
        forecast.ended(setting, durations[setting])
        left = sum(durations[other] for other in order[done:])
        if done >= 2:
            assert forecast.seconds_left() == pytest.approx(left)
    assert forecast.seconds_left() == 0


def test_settings_that_were_not_tried_yet_follow_those_that_were():
    forecast = Forecast(usual=1.0, slots=1)
    for number in range(20):
        forecast.add(f"setting {number}")
    for number in range(8):
        forecast.ended(f"setting {number}", 5.0)
    assert forecast.seconds_left() == pytest.approx(12 * 5, rel=0.1)


def test_the_last_trials_do_not_end_before_the_longest_of_them():
    forecast = Forecast(usual=1.0, slots=16)
    forecast.add("long")
    assert forecast.seconds_left() == 1.0


def test_studies_that_have_not_begun_are_corrected_by_those_that_have_ended():
    assert seconds_left_of_all([], 5.0, [10.0]) == 15.0
    assert seconds_left_of_all([(10.0, 30.0)], 5.0, [10.0]) == 35.0


def trials_take(seconds, monkeypatch):
    """Trials are not run, but reported to have taken so long."""

    def outcomes(where, trials, slots, limit, *, single_threaded):
        for point, seed in trials:
            yield {"point": dict(point), "seed": seed, "figures": {"y": 1.0}, "seconds": seconds}

    monkeypatch.setattr(runner, "pace", lambda: 1.0)
    monkeypatch.setattr(runner, "outcomes", outcomes)


def test_recorded_trials_count_as_measured(tmp_path, cores, monkeypatch):
    cores(1)
    trials_take(50.0, monkeypatch)
    told: list[Progress] = []
    Study(experiment(), "made-up", tmp_path / "x.jsonl", seeds=1).run(told.append)
    assert [(progress.done, progress.total) for progress in told] == [(done, 4) for done in range(5)]
    assert told[-1].seconds_left == 0
    again = Study(experiment(), "made-up", tmp_path / "x.jsonl", seeds=2)
    assert again.expected == pytest.approx(200.0)
    assert again.duration < 100


def test_on_the_users_data_the_first_trial_is_the_only_guide(tmp_path, cores, monkeypatch):
    """A usual duration of 5 s is that of generated rows: on larger ones it made the forecast six times too low."""
    cores(2)
    trials_take(30.0, monkeypatch)
    told: list[Progress] = []
    study = Study(
        experiment(timed=True), "made-up", tmp_path / "x.jsonl", seeds=1, settings={"data": ["rows.svm"]}
    )  # fmt: skip
    assert study.expected is None
    assert study.duration == pytest.approx(20.0)  # a listing of experiments has no data
    study.run(told.append)
    assert [progress.seconds_left for progress in told] == [None, 90.0, 60.0, 30.0, 0.0]


def test_a_forecast_without_anything_to_go_by_is_announced_as_such(tmp_path, capsys, monkeypatch):
    pytest.importorskip("plotly", reason="pip install 'hogwild[lab]'")
    path = tmp_path / "own.py"
    path.write_text(
        "from hogwild.lab.experiment import Experiment, grid, with_file\n"
        "experiment = Experiment('own', 'Own', '?', '', grid(x=[1, 2]), grid(x=[1, 2]), lambda point, seed: {'y': 1.0},"
        " lambda results: ([], []), (1, 1), (1, 1), on_data=with_file, timed=True)\n"
    )
    (tmp_path / "rows.svm").write_text("1 1:1\n")
    words = ["lab", str(path), "--data", str(tmp_path / "rows.svm"), "--out", str(tmp_path / "lab")]
    assert main(words) == 0
    told = capsys.readouterr().err
    assert "own: 2 trials on your data: the first of them tell the time" in " ".join(told.split())
    lines = [line for line in told.splitlines() if " of 2 trials" in line]  # one for each, as this is no terminal
    assert lines == ["own: 0 of 2 trials", "own: 1 of 2 trials, about 1 second left", "own: 2 of 2 trials"]


def test_one_second_is_no_plural():
    assert [in_words(seconds) for seconds in (0.0, 1.4, 1.6)] == ["1 second", "1 second", "2 seconds"]
