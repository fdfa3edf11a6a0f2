"""Whatever goes wrong: staleness keeps its bound, no push counts twice or is lost once acknowledged, and a run ends.

``HOGWILD_EXECUTIONS`` says how many executions. One that fails is shrunk, and printed so that it can be repeated.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace

import pytest
from executions import Execution, executions, others, parameter_servers, without_servers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from regressions import REGRESSIONS

from hogwild.strategies import LocalSGD, ParameterServer

EXECUTIONS = int(os.environ.get("HOGWILD_EXECUTIONS", "50"))
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]  # on a busy machine


@pytest.mark.parametrize("execution", REGRESSIONS.values(), ids=list(REGRESSIONS))
def test_what_failed_once_does_not_fail_again(execution: Execution) -> None:
    assert execution.play().reason in ("epochs", "seconds")


@settings(max_examples=EXECUTIONS, suppress_health_check=SLOW, print_blob=True)
@given(executions(parameter_servers()))
def test_parameter_servers_keep_their_promises(execution: Execution) -> None:
    assert execution.play().reason in ("epochs", "seconds")


@settings(max_examples=EXECUTIONS, suppress_health_check=SLOW, print_blob=True)
@given(
    executions(
        st.builds(ParameterServer, st.integers(1, 6), st.integers(1, 3), combine=st.just("sum"))
        | st.builds(LocalSGD, st.integers(1, 6), st.integers(1, 3))
    ),
    st.data(),
)
def test_workers_that_pull_changes_have_each_of_them_once(execution: Execution, data: st.DataObject) -> None:
    logged = data.draw(st.sampled_from([4, 0.01, 0.0]), "size of the log of changes")
    fresh = data.draw(st.sampled_from([1, math.inf]), "delay from which on changes are scaled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hogwild.strategies.roles.LOGGED", logged)
        assert replace(execution, resident=True, fresh=fresh).play().reason in ("epochs", "seconds")


@settings(max_examples=EXECUTIONS // 2, suppress_health_check=SLOW, print_blob=True)
@given(executions(others))
def test_other_strategies_keep_theirs(execution: Execution) -> None:
    assert execution.play().reason in ("epochs", "seconds")


@settings(max_examples=EXECUTIONS // 2, suppress_health_check=SLOW, print_blob=True)
@given(executions(without_servers))
def test_strategies_without_servers_keep_theirs(execution: Execution) -> None:
    assert execution.play().reason in ("epochs", "seconds")
