"""A network that does not fit into memory is refused before it is made, with what it needs and what there is."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset
from typer.testing import CliRunner

import hogwild
from hogwild.cli import app, load
from hogwild.errors import ParameterError
from hogwild.nn import memory_footprint
from hogwild.nn.memory_footprint import MemoryFootprint
from hogwild.runtimes.processes.optimiser_state import allocate_state, unallocated_bytes

MIB = 2**20


@pytest.fixture
def free(monkeypatch):
    """Sets the free memory and swap space."""

    def set_free(memory, swap=0):
        monkeypatch.setattr(memory_footprint, "available_bytes", lambda: memory)
        monkeypatch.setattr(memory_footprint, "swap_bytes", lambda: swap)

    return set_free


def test_a_table_that_does_not_fit_is_refused_before_it_is_made(free):
    """It was a RuntimeError of PyTorch's allocator."""
    free(100 * MIB)
    with pytest.raises(ParameterError, match=r"200,000,000 rows x 64 needs 48.4 GiB of memory.*100.0 MiB free"):
        hogwild.SparseTable(200_000_000, 64, update="adagrad")
    with pytest.raises(ParameterError, match=r"embeddings 47.7 GiB, accumulators of AdaGrad 762.9 MiB"):
        hogwild.SparseMLP(200_000_000, [64], 2, update="adagrad")
    with torch.device("meta"):
        assert hogwild.SparseMLP(200_000_000, [64], 2).table.weight.shape == (200_000_000, 64)


def test_with_swap_space_there_is_a_warning(free):
    free(5 * MIB, 100 * MIB)
    with pytest.warns(UserWarning, match="5.0 MiB free, and 100.0 MiB of swap.*swapped out"):
        MemoryFootprint({"table": 50 * MIB}).check("A table", "Make it smaller.")
    with pytest.raises(ParameterError, match="Make it smaller"):
        MemoryFootprint({"table": 106 * MIB}).check("A table", "Make it smaller.")
    MemoryFootprint({"table": 5 * MIB}).check("A table", "Make it smaller.")


def module():
    net = nn.Linear(2_000, 1_000, bias=False)  # 8,000,000 bytes
    return hogwild.Module(net, nn.functional.mse_loss, TensorDataset(torch.zeros(8, 2_000), torch.zeros(8, 1_000)))


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({}, "state of the optimiser 15.3 MiB, memory that is shared 22.9 MiB"),
        ({"rule": torch.optim.SGD, "average": 0.5}, "average of the iterates 7.6 MiB, memory that is shared 15.3 MiB"),
        (
            {"rule": torch.optim.SGD, "average": hogwild.EMA(0.9)},
            "average of the iterates 7.6 MiB, memory that is shared 15.3 MiB",
        ),
        (
            {"rule": torch.optim.SGD, "strategy": hogwild.Averaging(4)},
            "copies of 4 workers 30.5 MiB, memory that is shared 38.1 MiB",
        ),
        ({"rule": torch.optim.SGD, "strategy": hogwild.Hogwild(9)}, "gradients of 9 workers 68.7 MiB"),
        (
            {"strategy": hogwild.ParameterServer(4), "runtime": hogwild.Simulator()},
            "networks of 4 workers 30.5 MiB, their gradients 30.5 MiB, the states of their optimisers 61.0 MiB",
        ),
    ],
    ids=["adam", "average", "ema", "averaging", "gradients", "messages"],
)
def test_a_run_that_does_not_fit_is_refused_before_it_starts(free, options, parts):
    problem = module()
    free(5 * MIB)
    with pytest.raises(ParameterError, match=f"this network of 7.6 MiB.*{parts}.*5.0 MiB free.*docs/guide/memory.md"):
        hogwild.minimise(problem, **{"strategy": hogwild.Hogwild(1), "budget": 1, **options})


@pytest.mark.parametrize("make", [
    torch.optim.Adam, torch.optim.SGD, lambda some: torch.optim.SGD(some, momentum=0.9), torch.optim.Adagrad,
    lambda some: torch.optim.RMSprop(some, centered=True), torch.optim.NAdam,
])  # fmt: skip
def test_the_expected_state_is_the_allocated_state(make):
    optimiser = make([nn.Parameter(torch.ones(50, 2)), nn.Parameter(torch.ones(3), requires_grad=False)])
    before = {id(part) for state in optimiser.state.values() for part in state.values()}
    expected = unallocated_bytes(optimiser)
    assert expected == sum(part.nbytes for part in allocate_state(optimiser) if id(part) not in before)
    assert unallocated_bytes(optimiser) == 0


# The command line


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:0.5 3:2\n0 2:1\n" * 20)
    return path


def refused(rows, *options):
    done = CliRunner().invoke(app, ["train", str(rows), "--problem", "sparse-mlp", *options])
    assert done.exit_code != 0
    return " ".join(f"{done.output} {done.exception}".split())


def test_the_command_line_says_what_is_needed_and_which_options_need_less(rows, free):
    free(1000 * MIB)
    said = refused(rows, "--features", "20000000")
    assert "20,000,000 features x 64 needs 9.7 GiB" in said
    assert "embeddings 4.8 GiB" in said
    for option in ("--features", "--bits", "--hidden", "--update sgd", "--device cuda"):
        assert option in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "options",
    [
        ["--runtime", "threads"],
        ["--runtime", "local"],
        ["--runtime", "local", "--strategy", "parameter-server"],
        ["--runtime", "simulator", "--strategy", "averaging"],
        ["--strategy", "synchronous"],
    ],
    ids=" ".join,
)
def test_what_cannot_train_a_network_is_refused_with_what_can(rows, options):
    """Each of threads and local sent the user to the other one."""
    said = refused(rows, *options)
    assert "Leave out --runtime, and choose --strategy serial, hogwild, locked, round-robin or averaging." in said


def test_processes_are_for_networks(rows):
    done = CliRunner().invoke(app, ["train", str(rows), "--runtime", "processes"])
    assert "leave out --runtime" in " ".join(f"{done.output} {done.exception}".split())


def test_the_command_line_speaks_of_its_own_options(rows):
    """It said: Use binary=False for data with values."""
    said = refused(rows, "--binary")
    assert "not every value is 1. Leave out --binary." in said
    assert "binary=False" not in said


def test_ones_are_trained_with_held_out_values(rows, tmp_path):
    ones = tmp_path / "ones.svm"
    ones.write_text("1 1:1 3:1\n0 2:1\n" * 20)
    from hogwild.cli.problems.adapter import Source
    from hogwild.cli.problems.sparse_mlp import open_samples

    for training, test in ((ones, rows), (rows, ones)):
        opened = open_samples(Source(training, test))
        assert not opened.training.binary
        assert not opened.held_out.binary
    assert open_samples(Source(ones, ones)).held_out.binary


def test_the_help_names_the_rules_that_work_and_all_formats():
    from hogwild.cli.problems import PROBLEMS, rules_help
    from hogwild.data.readers import READERS
    from hogwild.rules import RULES

    assert PROBLEMS["linear"].rules == tuple(RULES)
    assert "sparse-mlp: sgd, adam, adamw, adagrad or rmsprop." in rules_help()
    for kind in PROBLEMS.values():
        for rule in kind.rules:
            kind.rule(rule)
    train = {each.name: each.help for each in load("train").params}
    assert rules_help() in train["rule"]
    assert all(reader.name in train["format"] for reader in READERS)
