"""Experiments run, go on where they were, and are read again from what was recorded."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest

from hogwild.cli import main
from hogwild.errors import CheckpointError, DataError, ParameterError
from hogwild.lab.experiment import Mean, OwnRows, Results
from hogwild.lab.experiments import NAMES, named, source
from hogwild.lab.report_builder import report_of, section_of
from hogwild.lab.report_model import Chart, Map, Table
from hogwild.lab.runner import Study, recorded

OWN = '''
"""An experiment of one's own."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.lab.report_model import Chart, Finding
from hogwild.lab.experiment import Experiment, grid


def trial(point, seed):
    if point["x"] == 3 and seed == 1:
        raise ValueError("three is too many")
    return {"y": point["x"] ** 2 + seed, "curve": [point["x"]] * 3, "at": [1, 2, 3]}


def read(results):
    chart = Chart("Squares", "x", "y", (results.over("x", "y", "squares"), results.curve("at", "curve", "flat", x=2)))
    return [Finding(f"At two it is {results.mean('y', x=2)}.", True)], [chart]


@dataclass(frozen=True)
class Setting:
    """A dataclass looks up the module that it is in."""

    x: int


experiment = Experiment("own", "My own", "What is a square?", "By squaring.", grid(x=[1, 2, 3]), grid(x=[1, 2]), trial,
                        read, seconds=(1, 1), seeds=(2, 1))
'''


ROWS = "".join(f"{1 if k % 3 else -1} {k % 7 + 1}:1 {k % 5 + 8}:0.5\n" for k in range(500))


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(OWN)
    return path


def study(own, tmp_path, **more):
    return Study(named(str(own)), str(own), tmp_path / "records" / "own.jsonl", **more)


def test_a_file_of_ones_own(own, tmp_path, capsys):
    pytest.importorskip("plotly", reason="pip install 'hogwild[lab]'")
    out = tmp_path / "lab"
    assert main(["lab", str(own), "--out", str(out), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["studies"][0]["findings"][0] == {"text": "At two it is 4.50 ± 0.50.", "holds": True}
    assert "1 of 6 trials could not be run" in record["studies"][0]["findings"][1]["text"]
    page = (out / "report.html").read_text()
    assert "What is a square?" in page
    assert "three is too many" in page
    again = tmp_path / "again.html"
    assert main(["report", str(out), "--out", str(again)]) == 0
    assert "At two it is 4.50" in again.read_text()


def test_what_was_recorded_is_not_run_again(own, tmp_path):
    first = study(own, tmp_path).run()
    lines = first_lines = (tmp_path / "records" / "own.jsonl").read_text().splitlines(keepends=True)
    assert len(lines) == 7
    # Killed in the middle of a line: that trial and those after it are run again, and no other.
    path = tmp_path / "records" / "own.jsonl"
    path.write_text("".join(lines[:4]) + lines[4][:10])
    told = []
    second = study(own, tmp_path).run(lambda progress: told.append((progress.done, progress.total)))
    assert told == [(3, 6), (4, 6), (5, 6), (6, 6)]
    assert path.read_text().splitlines(keepends=True)[:4] == first_lines[:4]
    assert sorted(map(_key, first.records)) == sorted(map(_key, second.records))


def test_failed_trials_are_run_again_and_no_others(own, tmp_path):
    first = study(own, tmp_path).run()
    own.write_text(OWN.replace('raise ValueError("three is too many")', 'return {"y": 10.0}'))
    told = []
    second = study(own, tmp_path).run(lambda progress: told.append((progress.done, progress.total)))
    assert told == [(5, 6), (6, 6)]
    records = recorded(tmp_path / "records" / "own.jsonl")
    assert len(records) == 6  # the later record of a trial replaces the earlier one
    assert not any(record.get("failure") for record in records)
    assert sorted(map(_key, second.records)) == sorted([*map(_key, first.records), (3, 1, 10.0)])
    section = section_of(named(str(own)), records)
    assert not any("could not be run" in finding.text for finding in section.findings)


def _key(record):
    return record["x"], record["seed"], record["y"]


def test_a_second_study_in_the_folder_is_told_who_runs_there(own, tmp_path):
    """It used to remove the line that the first was writing, and what the first wrote after that was lost."""
    first, second = study(own, tmp_path), study(own, tmp_path)
    refused = []

    def try_second(progress):
        with pytest.raises(CheckpointError, match=f"process {os.getpid()} on"):
            second.run()
        refused.append(progress.done)

    first.run(try_second)
    assert len(refused) > 1
    assert not (tmp_path / "records" / ".lock").exists()


def test_other_records_in_the_folder_are_refused(own, tmp_path):
    study(own, tmp_path).run()
    with pytest.raises(DataError, match="another study: quick is False"):
        study(own, tmp_path, quick=True).run()
    (tmp_path / "records" / "own.jsonl").write_text("not json\n")
    with pytest.raises(DataError, match="no record of an experiment"):
        study(own, tmp_path).run()


def test_a_record_whose_experiment_is_gone_is_shown_as_it_is(own, tmp_path):
    study(own, tmp_path).run()
    own.unlink()
    section = report_of([tmp_path / "records"]).sections[0]
    assert section.title.startswith("Records of")
    assert len(section.records) == 5


def test_trials_side_by_side_and_one_after_the_other_agree(own, tmp_path):
    beside = study(own, tmp_path).run()
    timed = replace(named(str(own)), timed=True)
    alone = Study(timed, str(own), tmp_path / "alone.jsonl").run()
    assert sorted(map(_key, beside.records)) == sorted(map(_key, alone.records))


HANGS = """
import os
import time

from hogwild.lab.experiment import Experiment, grid


def trial(point, seed):
    print("standard output belongs to the result of the command")
    if point["x"] == "hangs":
        time.sleep(3600)
    if point["x"] == "crashes":
        os._exit(3)
    return {"y": 1.0}


def read(results):
    return [], []


points = grid(x=["hangs", "works", "crashes", "works too"])
experiment = Experiment("hangs", "", "", "", points, points[:1], trial, read, (1, 1), (1, 1), timed=TIMED)
"""


@pytest.mark.parametrize("timed", [True, False])
def test_a_trial_that_hangs_or_crashes_has_failed_and_the_others_have_not(timed, tmp_path, capfd):
    path = tmp_path / "hangs.py"
    path.write_text(HANGS.replace("TIMED", str(timed)))
    experiment, records = named(str(path)), tmp_path / "hangs.jsonl"
    # The limit is for the trial that hangs alone, because on a busy machine any other could exceed it as well.
    others = replace(experiment, points=experiment.points[1:])
    results = Study(others, str(path), records).run()
    assert sorted(results.values("x")) == ["works", "works too"]
    hanging = replace(experiment, points=experiment.quick, limit=0.5)
    Study(hanging, str(path), records).run()
    failed = {record["point"]["x"]: record["failure"] for record in recorded(records) if record["figures"] is None}
    assert failed == {
        "hangs": "It took longer than 0.5 s and was ended.", "crashes": "Its process ended with exit code 3.",
    }  # fmt: skip
    assert capfd.readouterr().out == ""


def test_an_experiment_keeps_the_pages_of_those_before_it(own, tmp_path, capsys):
    pytest.importorskip("plotly", reason="pip install 'hogwild[lab]'")
    out, other = tmp_path / "lab", tmp_path / "other.py"
    other.write_text(OWN.replace('"own", "My own"', '"other", "Another one"'))
    assert main(["lab", str(own), "--quick", "--out", str(out)]) == 0
    assert main(["lab", str(other), "--quick", "--out", str(out)]) == 0
    page = (out / "report.html").read_text()
    assert 'href="#study-own">My own</a>' in page
    assert 'href="#study-other">Another one</a>' in page
    # What cannot be read is named, and hides nothing else.
    (out / "notes.jsonl").write_bytes(b"\xff\xfe no record")
    assert main(["report", str(out), "--out", str(tmp_path / "again.html")]) == 0
    page = (tmp_path / "again.html").read_text()
    assert "notes.jsonl cannot be read" in page
    assert "My own" in page
    assert main(["report", str(out / "notes.jsonl"), "--out", str(tmp_path / "again.html")]) == 1
    assert "this is no record of an experiment" in capsys.readouterr().err


def test_data_is_honoured_or_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("plotly", reason="pip install 'hogwild[lab]'")
    Path("rows.svm").write_text(ROWS)
    for words, told in (
        (["topologies", "--data", "rows.svm"], "topologies generates its own problem and reads no --data"),
        (["all", "--data", "rows.svm"], "Leave --data out, or name one of "),
        (["schedules", "--data", "nowhere.svm"], "nowhere.svm: there is no such file"),
        (["schedules", "--data", "rows.svm", "--data", "rows.svm"], "--data is one file"),
        (["paper", "--data", "rows.svm"], "--data is NAME=FILE for paper"),
        (["compare"], "hogwild compare DATA"),
    ):
        assert main(["lab", *words]) == 2
        assert told in capsys.readouterr().err
    assert not Path("lab").exists()


def test_schedules_on_ones_own_data(tmp_path):
    (tmp_path / "rows.svm").write_text(ROWS)
    experiment = named("schedules")
    assert experiment.on_data is not None
    points = experiment.on_data([{"schedule": "cosine", "strategy": "serial"}], [str(tmp_path / "rows.svm")])
    assert experiment.runs_alone(points[0])
    figures = experiment.trial(points[0], 0)
    assert len(figures["test_curve"]) == len(figures["epochs"]) == len(figures["times"]) > 1
    assert figures["excess"] is None


@pytest.mark.parametrize(
    ("labels", "loss"), [([1, -1], "logistic"), ([0, 1, 2], "softmax"), ([0.5, 1.5, 2], "squared")]
)
def test_the_loss_of_ones_own_data_goes_by_its_labels(labels, loss, tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("".join(f"{labels[k % len(labels)]} 1:{k}\n" for k in range(60)))
    rows = OwnRows.open(str(path), 0.2)
    assert rows.loss == loss
    assert (rows.training.n_rows, rows.held_out.n_rows) == (48, 12)
    assert rows.scale > 0


@pytest.mark.parametrize("wrong", ["import no_such_thing", "experiment = 3", ""])
def test_a_file_that_is_no_experiment(wrong, tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text(wrong)
    with pytest.raises(ParameterError, match=r"wrong\.py: "):
        named(str(path))


def test_wrong_names_and_options_are_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("plotly", reason="pip install 'hogwild[lab]'")
    for words in (
        ["lab", "colisions"], ["lab", "missing.py"], ["report", "nowhere"], ["lab", "paper", "--data", "RCV1"],
        ["compare", "nothing.svm"], ["lab", "paper", "--data", "Rcv2=x"],
    ):  # fmt: skip
        assert main(words) == 2
        told = capsys.readouterr().err
        assert told.startswith("error: ")
        assert "Traceback" not in told


def test_every_experiment_can_be_copied_and_says_how_long_it_takes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["lab", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["experiments"]
    assert [each["name"] for each in told] == list(NAMES)
    assert all(0 < each["quick_seconds"] < each["seconds"] for each in told)
    for name in NAMES:
        assert main(["lab", name, "--copy"]) == 0
        copied = Path(f"{name.replace('-', '_')}.py")
        assert copied.read_text() == source(name)
        assert named(str(copied)).name == name
    assert main(["lab", "delays", "--copy"]) == 2


@pytest.mark.parametrize("name", ["delays", "schedules", "topologies", "strategies", "regularisation", "batch-size",
                                  "paper", "collisions", "one-pass", "sparse-networks", "scale-out",
                                  "hardware"])  # fmt: skip
def test_a_trial_of_every_experiment(name, monkeypatch):
    """All of them are run by make lab."""
    experiment = named(name)
    monkeypatch.setattr("hogwild.lab.experiments.batch_size.EPOCHS", 1)
    point = [point for point in experiment.quick if point.get("hardware") != "GPU"][-1]
    figures = experiment.trial(point, 0)
    assert any(isinstance(value, float) and math.isfinite(value) for value in figures.values())


def test_readings_are_charts_with_words(tmp_path):
    experiment = named("topologies")
    points = [point for point in experiment.quick if point["topology"] in ("ring", "torus", "clique")]
    small = Study(replace(experiment, quick=points, timed=True), "topologies", tmp_path / "t.jsonl", True, 1)
    small.run()
    section = section_of(small.experiment, recorded(small.path), True)
    assert section.findings[0].holds
    assert all(part.words for part in section.parts if isinstance(part, (Chart, Map)))
    assert any(isinstance(part, Table) for part in section.parts)


def test_compare_on_ones_own_data(tmp_path, capsys):
    pytest.importorskip("plotly", reason="pip install 'hogwild[lab]'")
    data = tmp_path / "rows.svm"
    data.write_text("".join(f"{1 if k % 3 else -1} {k % 7 + 1}:1 {k % 5 + 8}:0.5\n" for k in range(500)))
    out = tmp_path / "out"
    words = ["compare", str(data), "--strategies", "serial,hogwild,local-sgd", "--workers", "2", "--out", str(out)]
    words = [*words, "--schedules", "constant,cosine", "--seeds", "1"]
    assert main([*words, "--epochs", "2", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["trials"] == 6
    page = (out / "report.html").read_text()
    assert "Held-out loss against time" in page  # its own page, not the records alone
    assert "Lowest held-out loss at the end: " in record["findings"][0]["text"]
    assert main([*words, "--epochs", "3"]) == 1  # would be mixed with the others in one mean
    assert "here is another study: epochs is 2" in capsys.readouterr().err
    assert main(["compare", str(data), "--schedules", "cosines", "--out", str(out)]) == 2
    assert "cosines" in capsys.readouterr().err


def test_compare_on_a_file_that_cannot_be_read_fails(tmp_path, capsys):
    pytest.importorskip("plotly", reason="pip install 'hogwild[lab]'")
    data = tmp_path / "rows.svm"
    data.write_text("1 1:x\n")
    words = ["compare", str(data), "--strategies", "serial", "--schedules", "constant", "--out", str(tmp_path / "out")]
    assert main([*words, "--seeds", "2"]) == 1
    error = capsys.readouterr().err
    assert "no trial of 2 could be run" in error
    assert "rows.svm" in error


def test_a_log_of_a_run_becomes_a_section(tmp_path):
    data, log = tmp_path / "rows.svm", tmp_path / "today.jsonl"
    data.write_text("".join(f"{1 if k % 3 else -1} {k % 7 + 1}:1 {k % 5 + 8}:0.5\n" for k in range(500)))
    assert main(["train", str(data), "--count-conflicts", "--workers", "2", "--epochs", "3", "--log", str(log)]) == 0
    section = report_of([log]).sections[0]
    titles = [part.title for part in section.parts]
    assert titles[:2] == ["Loss over epochs", "Staleness"]
    assert "Writes of worker 1" in titles
    assert "of updates collided with" in section.findings[1].text


def test_means_know_how_far_off_they_are():
    results = Results(tuple({"w": w, "seed": seed, "loss": w + 0.1 * seed} for w in (1, 2) for seed in range(3)))
    assert results.mean("loss", w=1) == Mean.of([1.0, 1.1, 1.2])
    assert results.mean("loss", w=1).below(results.mean("loss", w=2))
    assert results.over("w", "loss", "x").y == pytest.approx([1.1, 2.1])
    assert math.isnan(results.mean("loss", w=9).value)
