from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hogwild.cli import doctor as module
from hogwild.cli import main
from hogwild.cli.diagnostics import microbenchmarks, optional_dependencies
from hogwild.cli.diagnostics.optional_dependencies import Extra, Found, try_extras
from hogwild.machine import this_machine


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(microbenchmarks, "TURNS", 100_000)
    monkeypatch.setattr(microbenchmarks, "LEAST", 2**20)
    monkeypatch.setattr(microbenchmarks, "MOST", 2**20)


@pytest.fixture
def _no_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        optional_dependencies, "try_extras", lambda: [Found("cuda", "training on a GPU", "not installed", "")]
    )


def test_the_record(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["ok"] is True
    assert record["compiles"] is True
    assert record["bandwidth_one_core"] > 0
    assert record["usable_cores"] >= 1
    assert record["machine"]["memory"] > 0
    assert record["versions"]["numba"]
    assert set(record["extras"]) == {"parquet", "zstd", "remote", "tensorboard", "torch", "ray", "cuda", "onnx", "lab"}
    assert {check["name"] for check in record["checks"]} >= {"packages", "cores", "compiler", "memory speed"}


@pytest.mark.usefixtures("_no_extras")
@pytest.mark.parametrize("columns", [80, 120])
def test_the_picture_fits(columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= columns
    for word in ("Machine", "caches", "Checks", "compiler", "Extras", "hogwild[cuda]"):
        assert word in out


@pytest.mark.usefixtures("_no_extras")
def test_a_broken_compiler_is_essential(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("cannot cache function 'add_up': no locator available")

    monkeypatch.setattr(microbenchmarks, "check_compiler", fail)
    assert main(["doctor", "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert record["ok"] is False
    broken = [check for check in record["checks"] if check["status"] == "error"]
    assert [check["name"] for check in broken] == ["compiler"]
    assert "NUMBA_CACHE_DIR" in broken[0]["remedy"]
    assert main(["doctor"]) == 1
    assert "essential is broken" in capsys.readouterr().out


@pytest.mark.usefixtures("_no_extras")
def test_switched_off_compilation_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    measured, (check,) = module.measure(this_machine())
    assert (measured, check.status) == ({}, "error")


def test_a_missing_package_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACKAGES", ("numpy", "no-such-package"))
    (check,) = module.check_versions()
    assert check.status == "error"
    assert "no-such-package" in check.said
    assert check.remedy


def test_what_is_said_about_machines() -> None:
    good = replace(
        this_machine(), logical_cores=8, allowed_cores=8, quota=None, numa_nodes=1, available=2**34,
        memory_limit=None, vectors=("avx", "avx2"),
    )  # fmt: skip
    assert [check.status for check in module.check_machine(good)] == ["ok"]
    for bad, name in [
        (replace(good, quota=2.5), "cores"),
        (replace(good, allowed_cores=1), "cores"),
        (replace(good, allowed_cores=4), "cores"),
        (replace(good, available=2**28), "memory"),
        (replace(good, memory_limit=2**28), "memory"),
        (replace(good, numa_nodes=2), "NUMA"),
        (replace(good, vectors=("avx",)), "SIMD"),
    ]:
        said = [check for check in module.check_machine(bad) if check.status != "ok"]
        assert [check.name for check in said] == [name]
        assert said[0].remedy or name == "SIMD"


def test_threads_that_wait_for_each_other_are_noticed() -> None:
    slow, _ = module._check_speed(1.05, 1e10, 1e10, 2)
    assert slow.status == "warning"
    assert "1.1 times" in slow.said or "1.0 times" in slow.said
    fine, _ = module._check_speed(1.9, 1e10, 2e10, 2)
    assert fine.status == "ok"
    assert [check.name for check in module._check_speed(None, 1e10, 1e10, 1)] == ["memory speed"]


def test_extras_that_crash_or_fail_are_broken_not_fatal() -> None:
    made = try_extras(
        (
            Extra("fine", "", ("numpy",), ("numpy",), "print('hello')"),
            Extra("fails", "", ("numpy",), ("numpy",), "raise OSError('libfoo.so is missing')"),
            Extra("crashes", "", ("numpy",), ("numpy",), "import os; os.abort()"),
            Extra("absent", "", ("x",), ("no_such_module_at_all",)),
        )
    )
    assert [found.status for found in made] == ["works", "broken", "broken", "not installed"]
    assert made[0].said.startswith("numpy ")
    assert made[0].said.endswith(", hello")
    assert "libfoo.so is missing" in made[1].said
    checks = module.check_extras(made)
    assert [check.name for check in checks] == ["extra fails", "extra crashes"]
    assert all(check.status == "warning" and "pip install" in check.remedy for check in checks)


def test_probes_measure_something() -> None:
    assert microbenchmarks.measure_bandwidth(2, 2**20) > 0
    assert microbenchmarks.measure_parallelism(2) > 0
    compiler = microbenchmarks.check_compiler()
    assert compiler.works
    assert compiler.cache is not None
