"""``hogwild train`` with strategies by messages: every option arrives, and the output has a summary of the messages."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild import Crash, Crashes, DelayAdaptive, DelayCompensation, Link
from hogwild.cli import main
from hogwild.cli.options.runtime import RuntimeOptions, make_runtime
from hogwild.cli.options.strategy import FIELDS, CommunicationOptions, with_options
from hogwild.delays import Always, Exponential, LogNormal, Normal
from hogwild.errors import ParameterError
from hogwild.runtimes import RUNTIMES, Local, Simulator
from hogwild.strategies import (
    STRATEGIES,
    AllToAll,
    Averaging,
    DiLoCo,
    ElasticAveraging,
    Gossip,
    Hogwild,
    LocalSGD,
    ParameterServer,
    Synchronous,
)

MESSAGE_PASSING = sorted(name for name, kind in STRATEGIES.items() if kind.passes_messages)
SIMULATED = ["--runtime", "simulator", "--workers", "3", "--rule", "sgd", "--schedule", "constant", "--step", "0.1"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    random = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("messages") / "rows.svm"
    rows = random.standard_normal((120, 4)).round(3)
    path.write_text(
        "".join(f"{1 if row[0] > 0 else -1} " + " ".join(f"{k}:{v}" for k, v in enumerate(row)) + "\n" for row in rows)
    )
    return str(path)


def trained(words: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> dict[str, Any]:
    assert main(["train", *words, "--json"]) == code, capsys.readouterr().err
    record: dict[str, Any] = json.loads(capsys.readouterr().out)
    return record


@pytest.mark.parametrize(
    ("strategy", "options", "expected"),
    [
        (ParameterServer, CommunicationOptions(), {"staleness": None, "shards": 1}),
        (ParameterServer, CommunicationOptions(shards=3, push_every="2"), {"shards": 3, "push_every": 2}),
        (ParameterServer, CommunicationOptions(push_every="2", pull_every=4), {"push_every": 2, "pull_every": 4}),
        (ParameterServer, CommunicationOptions(staleness="0", combine="sum"), {"staleness": 0, "combine": "sum"}),
        (ParameterServer, CommunicationOptions(staleness="none"), {"staleness": None}),
        (ParameterServer, CommunicationOptions(correction="delay-adaptive:7"), {"correction": DelayAdaptive(7)}),
        (ParameterServer, CommunicationOptions(correction="delay-compensation"), {"correction": DelayCompensation()}),
        (ParameterServer, CommunicationOptions(compression="top-k:0.1"), {"compression": "top-k:0.1"}),
        (ParameterServer, CommunicationOptions(within="hogwild:2"), {"within": Hogwild(2)}),
        (Gossip, CommunicationOptions(topology="exponential", synchronous=False),
         {"topology": "exponential", "synchronous": False}),
        (AllToAll, CommunicationOptions(synchronous=True, combine="sum", period="2"), {"combine": "sum", "period": 2}),
        (Synchronous, CommunicationOptions(accumulate=4), {"accumulate": 4}),
        (LocalSGD, CommunicationOptions(period="16", compression="half"), {"period": 16, "compression": "half"}),
        (DiLoCo, CommunicationOptions(outer_rate=0.5, outer_momentum=0.8), {"rate": 0.5, "momentum": 0.8}),
        (ElasticAveraging, CommunicationOptions(elasticity=0.2, shards=2), {"elasticity": 0.2, "shards": 2}),
    ],
)  # fmt: skip
def test_options_reach_the_strategy(strategy: Any, options: CommunicationOptions, expected: dict[str, Any]) -> None:
    made = with_options(strategy(workers=5), options)
    assert made == strategy(workers=5, **expected)


def test_every_option_goes_with_some_strategy() -> None:
    has = {field.name for kind in STRATEGIES.values() for field in fields(kind)}
    assert {FIELDS.get(field.name, field.name) for field in fields(CommunicationOptions)} <= has


def test_every_strategy_is_in_the_help(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    main(["train", "--help"])
    shown = capsys.readouterr().out
    assert [name for name in STRATEGIES if name not in shown] == []


def test_options_reach_the_simulator() -> None:
    options = RuntimeOptions(
        compute_time="log-normal:0.002:0.3", delay=["1=0.01", "2=exponential:0.5"], latency="exponential:0.01",
        bandwidth="10MB", handling_time="0.002", message_loss=0.1, duplication=0.2, reordering=0.3,
        crash=["worker-1@3.5+2", "server-0@4"], crashes="30:2", join_times=["3@2.0"], detection_delay=0.5,
    )  # fmt: skip
    assert make_runtime("simulator", ParameterServer(), options, CommunicationOptions()) == Simulator(
        LogNormal(0.002, 0.3),
        Link(Exponential(0.01), 1e7, 0.1, 0.2, 0.3),
        {1: 0.01, 2: Exponential(0.5)},
        (Crash("worker-1", 3.5, 2.0), Crash("server-0", 4.0), Crashes(30.0, 2.0)),
        {3: 2.0},
        0.5,
        handling_time=0.002,
    )
    made = make_runtime(
        "simulator", ParameterServer(), RuntimeOptions(compute_time="0.01", crashes="5"), CommunicationOptions()
    )
    assert (made.compute_time, made.faults, made.link) == (Always(0.01), (Crashes(5.0),), Link())


def test_options_reach_threads_that_exchange_messages() -> None:
    options = RuntimeOptions(
        delay=["2=0.05,3=normal:0.1:0.02"], latency="0.01", crash=["worker-0@1"], join_times=["1@2"],
        detection_delay=0.5,
    )  # fmt: skip
    assert make_runtime(None, ParameterServer(), options, CommunicationOptions()) == Local(
        delay={2: 0.05, 3: Normal(0.1, 0.02)},
        latency=0.01,
        faults=(Crash("worker-0", 1.0),),
        join_times={1: 2.0},
        detection_delay=0.5,
    )


def test_workers_in_one_memory_are_threads_unless_they_exchange_messages() -> None:
    assert make_runtime(None, Averaging(2), RuntimeOptions(), CommunicationOptions()) == RUNTIMES["threads"]()
    assert make_runtime("simulator", Averaging(2), RuntimeOptions(), CommunicationOptions()) == Simulator()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--strategy", "local-sgd", "--push-every", "3"], "--push-every goes with --strategy parameter-server."),
        (["--strategy", "hogwild", "--outer-rate", "3"], "--outer-rate goes with --strategy diloco."),
        (["--strategy", "synchronous", "--elasticity", "0.1"], "--elasticity goes with --strategy elastic-averaging."),
        (["--strategy", "hogwild", "--bandwidth", "1"], "--bandwidth goes with --runtime simulator or ray."),
        (["--strategy", "hogwild", "--runtime", "simulator"], "share one memory, which goes with --runtime threads"),
        (["--strategy", "local-sgd", "--runtime", "threads"], "exchange messages, which goes with --runtime "),
        (["--strategy", "synchronous", "--runtime", "threads", "--accumulate", "2"], "exchange messages"),
        ([*SIMULATED, "--strategy", "parameter-server", "--staleness", "some"], "a number of pushes, 'fixed:20'"),
        ([*SIMULATED, "--strategy", "parameter-server", "--staleness", "1", "--pull-every", "9"], "pull more often"),
        ([*SIMULATED, "--strategy", "parameter-server", "--correction", "delay-adaptive:x"], "a name and a number"),
        ([*SIMULATED, "--strategy", "parameter-server", "--correction", "delays"], "'delay-compensation'"),
        ([*SIMULATED, "--strategy", "parameter-server", "--delay", "two=3"], "such as {2: 0.05}"),
        ([*SIMULATED, "--strategy", "parameter-server", "--delay", "7=3"], "workers 0 to 2; 7 is none"),
        ([*SIMULATED, "--strategy", "parameter-server", "--join-times", "1"], "such as 3@2.0"),
        ([*SIMULATED, "--strategy", "parameter-server", "--crash", "somebody@1"], "such as worker-1@3.5+2"),
        ([*SIMULATED, "--strategy", "parameter-server", "--crash", "worker-9@1"], "There is no node 'worker-9'"),
        ([*SIMULATED, "--strategy", "parameter-server", "--crashes", "often"], "numbers of seconds"),
        ([*SIMULATED, "--strategy", "parameter-server", "--message-loss", "2"], "a share of at least 0 and below 1"),
        ([*SIMULATED, "--strategy", "parameter-server", "--compute-time", "slowly:3"], "'heavy-tail'"),
        (
            [*SIMULATED, "--strategy", "parameter-server", "--checkpoint", ".", "--checkpoint-seconds", "1"],
            "each epoch",
        ),
        ([*SIMULATED, "--strategy", "parameter-server", "--within", "hogwild:all"], "such as hogwild:2"),
        (["--runtime", "moon"], "'simulator'"),
    ],
)
def test_what_does_not_go_together(words: list[str], said: str, data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", data, *words]) == 2
    assert said in capsys.readouterr().err


def test_an_option_of_message_passing_is_not_passed_over_in_silence() -> None:
    with pytest.raises(ParameterError, match="for workers that exchange messages: add --runtime "):
        make_runtime("processes", Synchronous(2), RuntimeOptions(), CommunicationOptions(accumulate=2))


@pytest.mark.parametrize("strategy", MESSAGE_PASSING)
def test_every_strategy_from_the_command_line(strategy: str, data: str, capsys: pytest.CaptureFixture[str]) -> None:
    record = trained([data, *SIMULATED, "--strategy", strategy, "--epochs", "2"], capsys)
    assert (record["strategy"], record["runtime"], record["workers"]) == (strategy, "simulator", 3)
    assert record["accuracy"] > 0.8
    told = record["staleness"]
    assert told.keys() >= {"mean", "median", "p95", "most", "histogram", "workers", "shards"}
    assert sum(told["histogram"].values()) == told["count"] == sum(each["count"] for each in told["workers"].values())
    assert record["messages"] == record["history"][-1]["messages"] == record["traffic"]["messages"] > 0
    assert record["bytes"] > 40 * record["messages"]
    assert 0 <= record["idle_share"] < 1
    assert record["seconds"] == record["simulated_seconds"] > 0
    assert record["real_seconds"] > 0


@pytest.mark.parametrize("strategy", ["parameter-server", "gossip"])
def test_threads_that_exchange_messages_from_the_command_line(
    strategy: str, data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        data,
        "--strategy",
        strategy,
        "--workers",
        "2",
        "--step",
        "0.1",
        "--epochs",
        "2",
        "--delay",
        "1=0.0001",
    ]
    record = trained(words, capsys)
    assert (record["runtime"], record["simulated_seconds"], record["real_seconds"]) == ("local", None, None)
    assert record["accuracy"] > 0.8
    assert record["messages"] > record["staleness"]["count"] > 0
    assert (record["topology"] is None) == (strategy == "parameter-server")


def test_delays_and_faults_change_what_happens(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [data, *SIMULATED, "--strategy", "parameter-server", "--epochs", "2", "--compute-time", "0.001"]
    calm = trained(words, capsys)
    rough = trained(
        [*words, "--delay", "2=0.009", "--latency", "0.01", "--message-loss", "0.1", "--crash", "worker-1@0.1+0.2",
         "--detection-delay", "0.05"],
        capsys,
    )  # fmt: skip
    assert (calm["crashes"], calm["traffic"]["lost"]) == (0, 0)
    assert rough["crashes"] == 1
    assert rough["traffic"]["lost"] > 0
    assert rough["traffic"]["resent"] > 0
    assert rough["idle_share"] > calm["idle_share"]
    assert rough["simulated_seconds"] > calm["simulated_seconds"]
    again = trained(words, capsys)
    assert (again["loss"], again["staleness"]) == (calm["loss"], calm["staleness"])


def test_a_run_is_recorded_and_played_again(data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [data, "--strategy", "parameter-server", "--staleness", "1", "--workers", "2"]
    words += ["--step", "0.1", "--epochs", "1"]
    trace = str(tmp_path / "trace.json")
    assert trained([*words, "--delay", "1=0.001", "--record", trace], capsys)["runtime"] == "local"
    again = trained([*words, "--runtime", "simulator", "--replay", trace], capsys)
    assert again["simulated_seconds"] > 0.05  # worker 1 has 60 rows, for each of which it took a millisecond more
    for wrong, said in (
        ([*words, "--replay", trace], "--replay goes with --runtime simulator."),
        ([*words, "--runtime", "simulator", "--replay", trace, "--compute-time", "1"], "leave out --compute-time"),
        ([*words, "--runtime", "simulator", "--record", trace], "--record goes with --runtime local."),
        ([*words, "--record", str(tmp_path / "none" / "trace")], "there is no folder"),
    ):
        assert main(["train", *wrong]) == 2
        assert said in capsys.readouterr().err


def test_going_on_from_a_checkpoint(data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [data, *SIMULATED, "--strategy", "synchronous", "--epochs", "3"]
    whole = trained([*words, "--checkpoint", str(tmp_path)], capsys)
    (tmp_path / "latest.safetensors").unlink()  # what is left is the one before
    again = trained([*words, "--resume", str(tmp_path)], capsys)
    assert again["loss"] == pytest.approx(whole["loss"], abs=1e-6)
    assert [entry["epoch"] for entry in again["history"]] == [entry["epoch"] for entry in whole["history"]]
    assert "another run" in trained([*words, "--l2", "0.5", "--resume", str(tmp_path)], capsys, code=1)["error"]


def test_workers_in_one_memory_have_nothing_to_tell(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    record = trained([data, "--strategy", "serial", "--step", "0.1", "--epochs", "2"], capsys)
    assert record["runtime"] == "threads"
    assert [record[name] for name in ("staleness", "messages", "bytes", "idle_share", "simulated_seconds")] == [
        None
    ] * 5


def test_people_are_told_about_staleness(data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "model"
    words = ["--strategy", "parameter-server", "--delay", "2=0.02", "--message-loss", "0.1", "--epochs", "2"]
    assert main(["train", data, *SIMULATED, *words, "--out", str(model)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for part in (
        "3 (parameter-server), simulator", "s simulated (in ", "changes by others on average",
        "worker-2 has the most", " lost, ", "of the workers' time",
    ):  # fmt: skip
        assert part in shown
    assert model.exists()
