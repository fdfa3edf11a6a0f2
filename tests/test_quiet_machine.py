"""A benchmark is refused while other work keeps the machine busy, and says in its table what the machine did."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
from benchmarks import __main__ as command
from benchmarks import quiet, results


def test_a_process_at_work_is_seen():
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        assert quiet.cores_at_work(1.0) > quiet.LIMIT
    finally:
        other.kill()
        other.wait()


def test_a_quiet_machine_is_said_to_be_quiet(monkeypatch):
    answers = iter([1.7, 0.6, 0.04])  # what was there before has ended by now
    monkeypatch.setattr(quiet, "cores_at_work", lambda: next(answers))
    assert quiet.state().startswith("quiet: 0.04 cores at work and load ")


def test_a_busy_machine_is_refused_unless_asked(monkeypatch):
    monkeypatch.setattr(quiet, "cores_at_work", lambda: 1.7)
    with pytest.raises(quiet.BusyError, match=r"keeps 1\.70 cores busy.*--busy"):
        quiet.state()
    assert quiet.state(anyway=True).startswith(
        "busy with other work, so that times are not to be relied on: 1.70 cores"
    )


def test_the_command_measures_nothing_on_a_busy_machine(monkeypatch, tmp_path):
    monkeypatch.setattr(quiet, "cores_at_work", lambda: 1.7)
    monkeypatch.setattr(results, "before", "")
    benchmark = SimpleNamespace(main=lambda out, quick: results.write("figures", "Figures", [], out))
    monkeypatch.setattr(command.importlib, "import_module", lambda name: benchmark)
    with pytest.raises(SystemExit, match=r"lost_updates is not measured\. Other work"):
        command.main(["lost-updates"], out=tmp_path)
    assert list(tmp_path.iterdir()) == []
    command.main(["lost-updates"], out=tmp_path, busy=True)
    assert (
        "(busy with other work, so that times are not to be relied on: 1.70 cores"
        in (tmp_path / "figures.md").read_text()
    )
