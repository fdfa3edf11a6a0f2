"""``hogwild train --config``: options from a file, and the files that repeat a run."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path
from typing import Any

import pytest
from test_train import FAST, Trained, written

from hogwild import load
from hogwild.cli import main
from hogwild.cli.options import configuration
from hogwild.cli.train import train
from hogwild.errors import ParameterError


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("configured") / "data.svm", 300)


def configured(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def refusal(path: Path, text: str) -> str:
    with pytest.raises(ParameterError) as error:
        configuration.read(configured(path, text), train)
    return str(error.value)


# Reading


def test_every_option_of_the_command_line_can_stand_in_a_file() -> None:
    settings = configuration.settings_of(train)
    assert settings.keys() == inspect.signature(train).parameters.keys() - {
        "context", "config", "save_config", "as_json", "debug",
    }  # fmt: skip
    assert all(setting.kind in configuration.VALUES for setting in settings.values())
    assert set(configuration.DESTINATIONS) | set(configuration.CLUSTER_OPTIONS) <= settings.keys()


def test_a_file_gives_options_and_the_command_line_prevails(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = configured(
        tmp_path / "run.toml",
        f'data = "{data}"\nstrategy = "serial"\nstep = 0.5\nepochs = 3\nholdout = 0.2\n',
    )
    record = Trained(["--config", str(file)], capsys).record
    assert (record["strategy"], record["epochs"], record["rows"], record["test_rows"]) == ("serial", 3, 240, 60)
    assert record["schedule"] == "Cooldown(step=0.5, start=0.25, floor='auto')"
    assert record["history"][0]["step"] < 0.5
    record = Trained(["--config", str(file), "--epochs", "1", "--step", "0.25"], capsys).record
    assert (record["epochs"], record["schedule"]) == (1, "Cooldown(step=0.25, start=0.25, floor='auto')")


def test_hyphens_and_underscores_lists_and_numbers(tmp_path: Path) -> None:
    found = configuration.read(
        configured(
            tmp_path / "run.toml",
            'push-every = 4\npull_every = 8\nlatency = 0.01\ndelay = ["2=0.01", "3=0.04"]\ncrash = "worker-1@3.5"\n'
            "l1 = 1\nsynchronous = false\n",
        ),
        train,
    )
    assert found == {
        "push_every": "4", "pull_every": 8, "latency": "0.01", "delay": ["2=0.01", "3=0.04"], "crash": ["worker-1@3.5"],
        "l1": 1.0, "synchronous": False,
    }  # fmt: skip


def test_a_cluster_has_a_table_of_its_own(tmp_path: Path) -> None:
    text = 'runtime = "ray"\n[cluster]\naddress = "10.0.0.1"\nport = 6379\nheartbeat-timeout = 5\n'
    assert configuration.read(configured(tmp_path / "run.toml", text), train) == {
        "runtime": "ray", "address": "10.0.0.1:6379", "heartbeat_timeout": 5.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('strateg = "serial"', "there is no option 'strateg'. Did you mean 'strategy'?"),
        ('DATA = "a.svm"', "there is no option 'DATA'. Did you mean 'data'?"),
        ("xyzzy = 1", "there is no option 'xyzzy'. 'hogwild train --help' lists all of them."),
        ('workers = "four"', "'workers' must be a whole number, such as workers = 4. Got 'four' instead."),
        ("workers = true", "'workers' must be a whole number"),
        ("workers = 2.5", "'workers' must be a whole number"),
        ("workers = 0", "'workers' must be at least 1. Got 0 instead."),
        ("bits = 32", "'bits' must be at most 30. Got 32 instead."),
        ('l1 = "small"', "'l1' must be a number, such as l1 = 0.5. Got 'small' instead."),
        ("balanced = 1", "'balanced' must be true or false, such as balanced = true. Got 1 instead."),
        ("step = true", "'step' must be text in quotes, or a number"),
        ("test = 3", "'test' must be a path in quotes"),
        ("hidden = [64, 64]", "'hidden' must be text in quotes, or a number"),
        ("push-every = 1\npush_every = 2", "'push-every' is there twice. Leave out one of them."),
        ("json = true", "'json' is for the command line alone: leave it out of the file."),
        ('config = "other.toml"', "'config' is for the command line alone"),
        ('[strategy]\nname = "serial"', "there is no table [strategy]. Options stand above all tables"),
        ("cluster = 3", "'cluster' is a table: write [cluster]"),
        ("[cluster]\nworkers = 3", "'workers' does not belong to the table [cluster]: write it above all tables."),
        ("[cluster]\nport = 6379", "'port' needs an address without one beside it"),
        ('[cluster]\naddress = "a:1"\nport = 6379', "'port' needs an address without one beside it"),
        ('[cluster]\naddress = "a"\nport = 0', "'port' must be a number from 1 to 65535"),
        ('address = "a:1"\n[cluster]\naddress = "b:2"', "'address' is there twice."),
        ("strategy = serial", 'is not TOML: Invalid value (at line 1, column 12). Text stands in quotes: strategy = "'),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_name(text: str, words: str, tmp_path: Path) -> None:
    said = refusal(tmp_path / "run.toml", text)
    assert words in said
    assert said.startswith(str(tmp_path / "run.toml"))


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--config", str(tmp_path / "none.toml")]) == 2
    assert "none.toml: there is no such file." in capsys.readouterr().err
    assert main(["train", "--config", str(tmp_path)]) == 2
    assert "this is a folder. Name a file in it, such as" in capsys.readouterr().err
    (tmp_path / "latin.toml").write_bytes(b'label = "\xe9"\n')
    assert main(["train", "--config", str(tmp_path / "latin.toml")]) == 2
    assert "latin.toml is not TOML, which is text in UTF-8." in capsys.readouterr().err


def test_without_data_in_the_file_it_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = configured(tmp_path / "run.toml", "epochs = 3\n")
    assert main(["train", "--config", str(file)]) == 2
    assert "Missing argument" in capsys.readouterr().err


# Writing


def test_a_saved_configuration_has_what_was_chosen_and_repeats_the_run(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data.parent)
    saved, first, second = tmp_path / "saved.toml", tmp_path / "first", tmp_path / "second"
    words = [data.name, *FAST, "--holdout", "0.2", "--schedule", "warmup:1:0.2:cosine", "--out", str(first)]
    record = Trained([*words, "--save-config", str(saved)], capsys).record
    assert tomllib.loads(saved.read_text()) == {
        "data": str(data), "strategy": "serial", "step": "0.5", "epochs": 3, "holdout": 0.2,
        "schedule": "warmup:1:0.2:cosine",
    }  # fmt: skip
    monkeypatch.chdir(tmp_path)  # paths in it hold in any folder
    again = Trained(["--config", str(saved), "--out", str(second)], capsys).record
    assert again["objective"] == record["objective"]
    assert (load(first).weights == load(second).weights).all()


def test_the_folder_of_a_run_has_the_configuration_that_repeats_it(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = Trained([str(data), *FAST, "--folder", str(tmp_path / "one")], capsys).record
    kept = tmp_path / "one" / "config.toml"
    assert "folder" not in tomllib.loads(kept.read_text())  # it would be refused the second time
    again = Trained(["--config", str(kept), "--folder", str(tmp_path / "two")], capsys).record
    assert [entry["loss"] for entry in again["history"]] == [entry["loss"] for entry in record["history"]]
    assert (load(tmp_path / "one" / "model").weights == load(tmp_path / "two" / "model").weights).all()
    assert (tmp_path / "two" / "config.toml").read_text() == kept.read_text()


def test_what_is_written_is_read_as_it_was(tmp_path: Path) -> None:
    values: dict[str, Any] = {name: setting.default for name, setting in configuration.settings_of(train).items()}
    chosen: dict[str, Any] = {
        "data": str(tmp_path / 'odd "name" \\ é\x7f\t.svm'), "l1": 1e-5, "workers": 3, "intercept": False,
        "balanced": True, "step": "0.1", "delay": ["2=0.01", "3=0.04"], "seconds": 1e16, "label": "\n",
    }  # fmt: skip
    text = configuration.repeating(values | chosen, train)
    configuration.save(tmp_path / "run.toml", text)
    assert configuration.read(tmp_path / "run.toml", train) == chosen


def test_a_place_that_cannot_be_written_to_is_refused_before_the_run(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", str(data), *FAST, "--save-config", str(tmp_path / "none" / "run.toml")]) == 2
    assert "--save-config" in capsys.readouterr().err
