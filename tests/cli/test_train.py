"""``hogwild train``: what it prints, what it leaves behind, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild import Run, load
from hogwild.cli import main

CONTRACT = {
    "loss", "objective", "test_loss", "accuracy", "seconds", "load_seconds", "compile_seconds", "rows", "nonzeros",
    "epochs", "strategy", "workers", "history",
}  # fmt: skip


def written(path: Path, rows: int, labels: str = "classes", seed: int = 0, base: int = 1) -> Path:
    rng = np.random.default_rng(seed)
    truth = np.random.default_rng(99).standard_normal(12)
    lines = []
    for _ in range(rows):
        columns = np.sort(rng.choice(12, 5, replace=False))
        values = rng.standard_normal(5).round(3)
        score = float(values @ truth[columns])
        label = {
            "classes": 1 if score > 0 else -1,
            "numbers": round(score, 4),
            "counts": rng.poisson(np.exp(score / 4)),
            "several": int(np.digitize(score, [-1, 1])) * 2,
            "one": 1,
        }[labels]
        lines.append(f"{label} " + " ".join(f"{c + base}:{v}" for c, v in zip(columns, values, strict=True)))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("train")
    made = {kind: written(folder / f"{kind}.svm", 300, kind) for kind in ("classes", "numbers", "several", "one")}
    made["counts"] = written(folder / "counts.svm", 300, "counts")
    made["test"] = written(folder / "test.svm", 100, "classes", seed=1)
    (folder / "odd.svm").write_text("3 1:1\n-1 2:1\n")
    (folder / "bad.svm").write_text("1 1:1\n-1 2:x\n")
    (folder / "wide.svm").write_text("1 1:1 40:2\n-1 2:1\n")
    made |= {name: folder / f"{name}.svm" for name in ("odd", "bad", "wide")}
    return {name: str(path) for name, path in made.items()}


def strict(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


class Trained:
    """What came of one ``hogwild train ... --json``."""

    def __init__(self, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        self.code = main(["train", *words, "--json"])
        out, self.err = capsys.readouterr()
        self.record = strict(out)  # exactly one object, and nothing else
        assert out.count("\n") == 1
        assert "Traceback" not in self.err


FAST = ["--strategy", "serial", "--step", "0.5", "--epochs", "3"]


def test_the_contract(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    done = Trained([files["classes"], "--test", files["test"], *FAST], capsys)
    record = done.record
    assert done.code == 0
    assert record.keys() >= CONTRACT
    assert (record["rows"], record["features"], record["nonzeros"], record["test_rows"]) == (300, 12, 1500, 100)
    assert (record["epochs"], record["strategy"], record["workers"], record["stop_reason"]) == (
        3,
        "serial",
        1,
        "epochs",
    )
    assert [entry["epoch"] for entry in record["history"]] == [1, 2, 3]
    last = record["history"][-1]
    assert (record["loss"], record["objective"]) == (last["loss"], last["objective"])
    assert (record["test_loss"], record["accuracy"]) == (last["test_loss"], last["test_accuracy"])
    assert record["train_accuracy"] == last["accuracy"] > 0.8
    assert min(record["seconds"], record["load_seconds"], record["compile_seconds"]) >= 0
    assert record["model"] is None


def test_a_warm_up_on_the_command_line(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    words = [files["classes"], *FAST, "--schedule", "warmup:2:0.5:constant"]
    assert [entry["step"] for entry in Trained(words, capsys).record["history"]] == [0.375, 0.5, 0.5]


def test_a_warm_up_that_does_not_end_is_said(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    for epochs, words in (("3", 0), ("5", 1)):
        done = Trained([files["classes"], *FAST[:-1], epochs, "--schedule", "warmup:5:constant"], capsys)
        assert ("the warm-up of --schedule warmup:5:constant does not end" in done.err) == (not words)


def test_numbers_of_updates_may_be_written_with_an_exponent(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    records = [Trained([files["classes"], *FAST, "--every", n], capsys).record["history"] for n in ("1e2", "100")]
    assert [[entry["updates"] for entry in each] for each in records] == [[100 * k for k in range(1, 10)]] * 2


def test_a_folder_with_a_run_is_resumed_by_its_option(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [files["classes"], *FAST, "--folder", str(tmp_path / "run")]
    assert Trained(words, capsys).code == 0
    again = Trained(words, capsys)
    assert again.code == 2
    assert "by --resume DIR" in again.record["error"]
    assert Trained([*words, "--resume", str(tmp_path / "checkpoints")], capsys).code == 0


def test_a_penalty_is_searched_once_by_a_run_that_is_resumed(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [files["classes"], *FAST, "--l2", "auto", "--resume", str(tmp_path / "none yet")]
    first, again = Trained(words, capsys), Trained([*words, "--epochs", "5"], capsys)
    assert (first.code, again.code, again.record["epochs"]) == (0, 0, 5)
    assert "from the beginning" in first.err
    assert "resumed after 3 epochs" in again.err
    (chosen,) = {re.search(r"l2 (\S+), from", done.err)[1] for done in (first, again)}  # type: ignore[index]  # both say it
    # The number has all of its digits, so that it can be given back.
    times = json.loads((tmp_path / "none yet" / "penalty.json").read_text())["times"]
    assert float(chosen) == times * (1 / 300)


def test_a_packed_folder_says_itself_how_indices_count(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pack", files["classes"], str(tmp_path / "packed")]) == 0
    capsys.readouterr()
    assert "--base 0" in Trained([files["classes"], *FAST], capsys).err
    assert "--base 0" not in Trained([str(tmp_path / "packed"), *FAST], capsys).err


def test_one_is_not_many(files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("plotly", reason="pip install 'hogwild[lab]'")
    log = str(tmp_path / "run.jsonl")
    assert main(["train", files["classes"], *FAST[:-1], "1", "--log", log]) == 0
    assert " 1 epoch " in capsys.readouterr().out
    assert main(["report", log, "--out", str(tmp_path / "report.html")]) == 0
    assert capsys.readouterr().out.endswith("report.html: 1 section\n")


@pytest.mark.parametrize(
    ("kind", "loss", "score"),
    [("numbers", "squared", "r2"), ("counts", "poisson", "r2"), ("several", "softmax", "accuracy")],
)
def test_every_kind_of_label(
    kind: str, loss: str, score: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    how = ["--strategy", "serial", "--step", "0.2", "--epochs", "20", "--l2", "1e-4"]  # compiled for others as well
    done = Trained([files[kind], "--loss", loss, *how], capsys)
    assert done.code == 0
    assert done.record[score] > 0.3
    assert done.record.keys() >= CONTRACT - {"accuracy"}
    assert done.record["test_loss"] is None


def test_all_the_options(files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        files["classes"], "--holdout", "0.2", "--loss", "hinge", "--l1", "1e-5", "--l2", "1e-4", "--no-intercept",
        "--balanced", "--rule", "sgd", "--step", "0.1", "--schedule", "inverse-time", "--average", "0.5",
        "--strategy", "hogwild", "--workers", "2", "--seed", "7", "--memory", "4GiB", "--epochs", "6",
        "--seconds", "60", "--target", "0.0001", "--patience", "5", "--out", str(tmp_path / "model"),
        "--checkpoint", str(tmp_path / "points"), "--checkpoint-seconds", "5", "--log", str(tmp_path / "log.jsonl"),
        "--tensorboard", str(tmp_path / "board"), "--format", "svmlight", "--features", "20", "--bits", "4",
        "--base", "1",
    ]  # fmt: skip
    done = Trained(words, capsys)
    assert done.code == 0
    record = done.record
    assert (record["rows"], record["test_rows"], record["features"], record["workers"]) == (240, 60, 20, 2)
    assert (record["seed"], record["strategy"], record["rule"]) == (7, "hogwild", "SGD()")
    assert record["schedule"].startswith("InverseTime(step=0.1")
    assert record["objective"] > record["loss"]
    model = load(tmp_path / "model")
    assert (model.loss, model.n_features, float(model.intercept[0])) == ("hinge", 20, 0.0)
    assert model.reading["base"] == 1
    assert (tmp_path / "points" / "latest.safetensors").exists()
    events = [strict(line)["event"] for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert events.count("epoch") == record["epochs"]
    assert any((tmp_path / "board").iterdir())


def test_people_get_a_table(files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(tmp_path / "model")
    assert main(["train", files["classes"], "--test", files["test"], "--epochs", "3", "--out", model]) == 0
    out, err = capsys.readouterr()
    for words in (
        "300 rows x 12 features",
        "(hogwild)",
        "rows/s",
        "objective",
        "held-out accuracy",
        "stopped by",
        "model",
    ):
        assert words in out
    assert "tried on a sample" in err


def test_the_step_that_was_chosen_is_told(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    done = Trained([files["classes"], "--epochs", "3"], capsys)
    (chosen,) = [event for event in done.record["events"] if event["event"] == "step chosen"]
    assert f"step {chosen['step']:g}" in done.err


def test_one_seed_gives_the_same_model(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        assert Trained([files["classes"], *FAST, "--out", str(tmp_path / name)], capsys).code == 0
    assert np.array_equal(load(tmp_path / "a").weights, load(tmp_path / "b").weights)


@pytest.mark.parametrize(
    ("words", "stopped"),
    [
        (["--epochs", "2"], "epochs"),
        (["--seconds", "0.05"], "seconds"),
        (["--target", "0.4", "--epochs", "50"], "target"),
        (["--holdout", "0.5", "--patience", "2", "--epochs", "5000", "--schedule", "constant"], "patience"),
    ],
)
def test_reasons_to_stop(
    words: list[str], stopped: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    done = Trained([files["classes"], "--strategy", "serial", "--step", "0.5", "--rule", "sgd", *words], capsys)
    assert (done.code, done.record["stop_reason"]) == (0, stopped)
    if stopped == "patience":
        assert done.record["test_loss"] == min(entry["test_loss"] for entry in done.record["history"])


# Wrong usage


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--loss", "logistics"], "Did you mean 'logistic'?"),
        (["--loss", "hinge:2"], "has no parameter"),
        (["--loss", "quantile:2"], "'loss' parameter must be"),
        (["--rule", "adagard"], "Did you mean 'adagrad'?"),
        (["--strategy", "hogwlid"], "Did you mean 'hogwild'?"),
        (["--schedule", "cosin"], "Did you mean 'cosine'?"),
        (["--schedule", "optimal", "--l2", "0"], "is for penalised problems: give l2"),
        (["--schedule", "optimal", "--l2", "0.1", "--step", "1"], "finds its own steps. Leave out --step"),
        (["--step", "big"], "'step' parameter must be a positive number or 'auto'. Got 'big'"),
        (["--step", "-1"], "'step' parameter must be"),
        (["--step", "nan"], "'step' parameter must be"),
        (["--l2", "-1"], "'l2' parameter must be a number of at least 0, or 'auto'. Got -1"),
        (["--l1", "nan"], "'l1' parameter must be"),
        (["--average", "2"], "'average' parameter must be between 0 and 1"),
        (["--holdout", "1.5"], "must be between 0 and 1. Got 1.5"),
        (["--holdout", "0"], "must be between 0 and 1"),
        (["--patience", "3"], "give --test or --holdout"),
        (["--epochs", "0"], "--epochs"),
        (["--workers", "0"], "--workers"),
        (["--seconds", "-3"], "'seconds' parameter must be a positive number"),
        (["--seed", "-3"], "--seed"),
        (["--memory", "lots"], "A size must be a number of bytes"),
        (["--out", "no/such/folder/model"], "there is no folder"),
        (["--out", "."], "this is a folder"),
        (["--checkpoint", "a", "--resume", "b"], "name different folders"),
        (["--checkpoint-seconds", "3"], "add --checkpoint DIR"),
        (["--checkpoint", "a", "--checkpoint-seconds", "-1"], "'seconds' parameter must be a positive number"),
        (["--base", "2"], "'base' parameter"),
        (["--format", "excel"], "'format' parameter must be one of"),
        (["--no-such-option"], "No such option"),
        (["--delay", "-1"], "'delay' parameter must be a number of seconds of at least 0. Got '-1'"),
        (["--delay", "nan"], "'delay' parameter must be"),
        (["--delay", "0=inf"], "'delay' parameter must be"),
        (["--delay", "normal:-1:2"], "'delay' parameter cannot be 'normal:-1:2': The 'mean' parameter"),
        (["--delay", "9=0.01", "--workers", "2"], "There are workers 0 to 1; 9 is none of them. Correct 'delay'."),
        (["--strategy", "parameter-server", "--latency", "-1"], "'latency' parameter must be a number of seconds"),
        (["--strategy", "parameter-server", "--staleness", "fixed:1.5"], "a whole number of pushes"),
        (["--schedule", "warmup:-1"], "cannot be 'warmup:-1': The 'epochs' parameter must be a positive number"),
        (["--sampling", "weighted"], "Other weights are given in Python"),
        (["--every", "1.5"], "'every' parameter must be"),
        (["--every", "inf"], "'every' parameter must be"),
    ],
)  # fmt: skip
def test_wrong_usage_is_2(
    words: list[str], message: str, files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    done = Trained([files["classes"], *words], capsys)
    assert done.code == 2
    assert message in done.record["error"]
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_held_out_data_comes_from_one_place(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    done = Trained([files["classes"], "--test", files["test"], "--holdout", "0.1"], capsys)
    assert done.code == 2
    assert "not from both" in done.record["error"]


@pytest.mark.parametrize(
    ("data", "words", "message"),
    [
        ("bad", [], "bad.svm, line 2"),
        ("one", [], "every label is 1"),
        ("numbers", [], "For numbers use 'squared' or 'huber'"),
        ("classes", ["--loss", "poisson"], "Poisson loss is for counts"),
        ("classes", ["--test", "odd"], "the label 3 is not one of the classes the model knows (-1, 1)"),
        ("classes", ["--test", "bad"], "bad.svm, line 2"),
        ("classes", ["--features", "3"], "beyond the 3 features"),
        ("classes", ["--base", "0", "--test", "no/such/file"], "there is no such file or folder"),
    ],
)
def test_wrong_data_is_1(
    data: str, words: list[str], message: str, files: dict[str, str], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    words = [files.get(word, word) for word in words]
    done = Trained([files[data], *FAST, *words, "--out", str(tmp_path / "model")], capsys)
    assert done.code == 1
    assert message in done.record["error"]
    assert not (tmp_path / "model").exists()


def test_a_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    done = Trained(["no-such-file.svm"], capsys)
    assert done.code == 1
    assert "no-such-file.svm: there is no such file or folder" in done.record["error"]


def test_features_that_training_did_not_have_are_left_out(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    done = Trained([files["classes"], *FAST, "--test", files["wide"]], capsys)
    assert (done.code, done.record["features"], done.record["test_rows"]) == (0, 12, 2)


def test_the_test_file_counts_as_the_training_file_does(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counted from 0, a test file without the first feature looks as if it counted from 1."""
    zero = str(written(tmp_path / "zero.svm", 300, base=0))
    for base, data in ((0, zero), (1, files["classes"])):
        rows = [line for line in Path(data).read_text().splitlines() if f" {base}:" not in line]
        (tmp_path / f"test{base}.svm").write_text("\n".join(rows) + "\n")
    found = [
        Trained([data, *FAST, "--test", str(tmp_path / f"test{base}.svm")], capsys).record["test_loss"]
        for base, data in ((0, zero), (1, files["classes"]))
    ]
    assert found[0] == found[1]


# Divergence, interruption, resumption


def test_divergence_is_told_in_words(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    words = [files["numbers"], "--loss", "squared", "--rule", "sgd", "--schedule", "constant", "--strategy", "serial"]
    done = Trained([*words, "--step", "1.5", "--epochs", "5"], capsys)
    assert done.code == 0
    assert "warning: the loss exploded in epoch 1" in done.err
    assert [event["event"] for event in done.record["events"]].count("diverged") >= 1


def test_hopeless_divergence_is_one_line(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [files["numbers"], "--loss", "squared", "--rule", "sgd", "--schedule", "constant", "--strategy", "serial"]
    done = Trained([*words, "--step", "1e9", "--epochs", "5", "--out", str(tmp_path / "model")], capsys)
    assert done.code == 1
    assert done.record["kind"] == "DivergedError"
    assert "Give a smaller step" in done.record["error"]
    assert done.err.count("error: ") == 1
    assert done.err.count("warning: ") == 5
    assert not (tmp_path / "model").exists()


def test_resuming(files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    points = str(tmp_path / "points")
    words = [files["classes"], "--strategy", "serial", "--step", "0.5", "--schedule", "constant"]
    whole = Trained([*words, "--epochs", "6"], capsys)
    begun = Trained([*words, "--epochs", "3", "--resume", points], capsys)
    assert "no checkpoint yet: from the beginning" in begun.err
    ended = Trained([*words, "--epochs", "6", "--checkpoint", points, "--resume", points], capsys)
    assert "resumed after 3 epochs" in ended.err
    assert ended.record["loss"] == whole.record["loss"]
    assert [entry["loss"] for entry in ended.record["history"]] == [entry["loss"] for entry in whole.record["history"]]
    other = Trained([*words, "--epochs", "6", "--resume", points, "--l2", "0.5"], capsys)
    assert other.code == 1
    assert "now 0.5" in other.record["error"]
    again = Trained([*words, "--epochs", "6", "--resume", points], capsys)
    assert "resumed after 6 epochs, where the run had ended by its limit of epochs: nothing is left" in again.err
    assert again.record["loss"] == whole.record["loss"]
    (tmp_path / "points" / "latest.safetensors").write_bytes(b"damaged")
    older = Trained([*words, "--epochs", "6", "--resume", points], capsys)
    (told,) = [line for line in older.err.splitlines() if "latest.safetensors" in line]
    assert told.startswith("warning: ")
    assert told.endswith(f"goes on from the checkpoint before it, {points}/previous.safetensors.")
    for name in ("latest", "previous"):
        (tmp_path / "points" / f"{name}.safetensors").write_bytes(b"damaged")
    assert Trained([*words, "--epochs", "6", "--resume", points], capsys).code == 1


@pytest.mark.parametrize("shards", ["1", "3"])
def test_a_packed_folder_and_a_file_train_alike(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], shards: str
) -> None:
    assert main(["pack", files["classes"], str(tmp_path / "packed"), "--shards", shards]) == 0
    capsys.readouterr()
    words = ["--strategy", "serial", "--step", "0.5", "--epochs", "20", "--l2", "0.01"]
    packed = Trained([str(tmp_path / "packed"), *words], capsys).record
    assert packed["rows"] == 300
    assert packed["objective"] == pytest.approx(
        Trained([files["classes"], *words], capsys).record["objective"], rel=0.01
    )


def test_a_missing_extra_leaves_the_terminal_as_it_was(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard.summary.writer.record_writer", None)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(["train", files["classes"], *FAST, "--tensorboard", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert "pip install 'hogwild[tensorboard]'" in err
    assert err.count("\x1b[?25l") == err.count("\x1b[?25h")  # the cursor was hidden as often as it was shown


def test_ctrl_c_keeps_the_model(files: dict[str, str], tmp_path: Path) -> None:
    command = [
        sys.executable, "-c", "import sys; from hogwild.cli import main; sys.exit(main())", "train", files["classes"],
        "--strategy", "serial", "--step", "0.5", "--epochs", "10000000", "--json",
        "--log", str(tmp_path / "log"), "--out", str(tmp_path / "model"),
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while '"event": "epoch"' not in ((tmp_path / "log").read_text() if (tmp_path / "log").exists() else ""):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    record = strict(out)
    assert process.returncode == 130
    assert record["stop_reason"] == "interrupted"
    assert record["history"][-1]["loss"] == record["loss"] < 0.7
    assert "Traceback" not in err
    assert np.isfinite(load(tmp_path / "model").weights).all()


def test_serial_with_several_workers_has_one(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    done = Trained([files["classes"], "--strategy", "serial", "--workers", "2", "--epochs", "2"], capsys)
    assert done.code == 0
    assert done.record["workers"] == 1
    assert "has one worker" in done.err


def test_a_buffer_is_a_number_of_rows_and_goes_with_hogwild(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    train = files["classes"]
    assert main(["train", train, "--workers", "2", "--buffer", "8", "--epochs", "2", "--json"]) == 0
    events = json.loads(capsys.readouterr().out)["events"]
    assert [event["rows"] for event in events if event["event"] == "replicas"] == [8]
    for wrong, said in (
        (["--buffer", "some"], "a number of rows"),
        (["--strategy", "locked", "--buffer", "8"], "goes with"),
    ):
        assert main(["train", train, *wrong]) != 0
        assert said in capsys.readouterr().err


def test_what_others_print_does_not_get_into_the_record(tmp_path, capsys, monkeypatch):
    from hogwild.training import minimise as training

    minimise = training.minimise

    def talkative(*arguments, **options):
        sys.stdout.write("(raylet) A worker died.\n")
        return minimise(*arguments, **options)

    monkeypatch.setattr(training, "minimise", talkative)
    data = written(tmp_path / "few.svm", 40)
    assert main(["train", str(data), "--epochs", "1", "--step", "0.1", "--workers", "1", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["epochs"] == 1
    assert "A worker died" in said.err


def test_a_run_leaves_a_folder(files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "run")
    words = ["train", files["classes"], "--epochs", "3", "--folder", folder]
    assert main([*words, "--test", files["test"]]) == 0
    run = Run.load(folder)
    assert run.stop_reason == "epochs"
    assert "test_loss" in run.history[-1]
    assert np.isfinite(run.model.weights).all()
    capsys.readouterr()
    assert main(words) == 2
    assert "there is a run already" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_log_on_a_full_disk_costs_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / "a.svm", 200)
    model = tmp_path / "a.model"
    command = ["train", str(file), "--epochs", "2", "--strategy", "serial", "--log", "/dev/full", "--out", str(model)]
    assert main([*command, "--json"]) == 1
    out, err = capsys.readouterr()
    assert "No space left on device" in json.loads(out)["log_errors"][0]
    assert err.count("warning: /dev/full: No space left on device. The log ends here; the training goes on.") == 1
    assert err.endswith("error: /dev/full: No space left on device. The log ends early; the training did not.\n")
    assert load(model).weights.any()
