"""Whatever goes wrong: staleness keeps its bound, no push counts twice or is lost once acknowledged, and a run ends.

``HOGWILD_EXECUTIONS`` says how many executions. One that fails is shrunk, and printed so that it can be repeated.
"""

from __future__ import annotations

import os

from executions import Execution, executions
from hypothesis import HealthCheck, given, settings

EXECUTIONS = int(os.environ.get("HOGWILD_EXECUTIONS", "100"))


@settings(max_examples=EXECUTIONS, suppress_health_check=list(HealthCheck))
@given(executions())
def test_parameter_servers_keep_their_promises(execution: Execution) -> None:
    assert execution.play().reason in ("epochs", "seconds")
