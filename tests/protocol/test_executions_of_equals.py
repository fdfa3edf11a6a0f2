"""Whatever goes wrong among workers without servers, a run ends, and no burst counts for more than it is.

``HOGWILD_EXECUTIONS`` says how many executions. One that fails is shrunk, and printed so that it can be repeated.
"""

from __future__ import annotations

import os

from executions import Execution, executions
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hogwild.runtimes.messaging.injected_faults import Crash, Link
from hogwild.strategies import AllToAll, Gossip

EXECUTIONS = int(os.environ.get("HOGWILD_EXECUTIONS", "30"))
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]  # on a busy machine

topologies = st.sampled_from(["ring", "clique", "star", "exponential", "one-peer-exponential"])
gossips = st.builds(Gossip, topologies, st.booleans(), st.integers(1, 6), st.integers(1, 3))
all_to_alls = st.builds(AllToAll, st.integers(1, 6), st.booleans(), st.integers(1, 3), st.just("mean"))

# A worker that is back before others have begun in a view with its earlier life.
REBORN = Execution(AllToAll(2, False, 1, "mean"), link=Link(0.003), faults=(Crash("worker-0", 0.0041, 0.0),))


@settings(max_examples=EXECUTIONS, suppress_health_check=SLOW, print_blob=True)
@given(executions(gossips | all_to_alls))
@example(REBORN)
def test_workers_without_servers_keep_their_promises(execution: Execution) -> None:
    outcome = execution.play()
    assert outcome.reason in ("epochs", "seconds")
    if execution.strategy.synchronous:  # parameters are means of parameters: each burst adds one to its place, or less
        assert outcome.values.min() >= 0
        assert outcome.values.max() <= 1 + 1e-5


@settings(max_examples=EXECUTIONS // 2, suppress_health_check=SLOW, print_blob=True)
@given(executions(st.builds(AllToAll, st.integers(1, 6), st.booleans(), st.integers(1, 3), st.just("sum"))))
def test_sums_without_crashes_have_every_burst_once(execution: Execution) -> None:
    if execution.faults or execution.late or execution.seconds is not None:
        execution = Execution(execution.strategy, link=execution.link, compute=execution.compute, slow=execution.slow)
    stage = execution.stage()
    entries = stage.job.make_trainer(0).entries(stage.play().values)
    assert entries.shape[1] > 0
    assert (abs(entries - 1) < 1e-5).all()
