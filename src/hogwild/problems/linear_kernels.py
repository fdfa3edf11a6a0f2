"""Choice of the compiled loops of linear models: by loss, rule, penalties, access policy and number of workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.dataset import Dataset
from hogwild.errors import ParameterError
from hogwild.jit import Function, bind
from hogwild.kernels import linear_build, loss_sums
from hogwild.kernels.conflict_counters import ConflictCounters
from hogwild.kernels.linear import ALL_ROWS, FLUSH_ROWS
from hogwild.losses import EPSILON_INSENSITIVE, HINGE, SOFTMAX, Loss
from hogwild.losses.loss import one_vs_rest, softmax
from hogwild.problems.hot_replicas import (
    HotReplicas,
    WorkerReplica,
    max_workers,
    replica_layout,
    rows_between_merges,
)
from hogwild.problems.problem import BoundKernel, QueueKernel, RangeKernel, State
from hogwild.rules.rule import Rule
from hogwild.rules.sklearn_sgd import Sequential

# Bytes of parameters below which the writes of any two workers conflict.
CROWDED = 2**16
# Bytes of parameters that stay in a core's cache.
NEAR = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class LinearKernels:
    """Loops that descend along the terms of a linear objective; the fields are all that they depend on."""

    loss: Loss
    outputs: int  # Number of scores of a row.
    l1: float
    l2: float
    # Function that returns the share of each coordinate's penalty in a term; it takes a pass over the data.
    shares: Callable[[], Array]
    intercept: bool
    intercept_lr_multiplier: float
    intercept_gradient: float
    class_weights: Array
    layout: str  # Layout of the rows.
    features: int  # Number of features that selects the loop, for a narrow sample as for the whole data.
    few_features: bool  # Whether the multiplication of all weights by a factor after each chunk costs almost nothing.
    standardised: bool  # Whether the columns are standardised.
    source: Dataset  # The rows, with stored frequencies.
    trained: Dataset  # The rows as they are trained on.

    def descent(
        self, rule: Rule, access: str, workers: int, alone: bool | None, counters: ConflictCounters | None
    ) -> BoundKernel:
        """Return the inner loop for a rule and an access policy; with ``counters``, it counts conflicts.

        Raises
        ------
        ParameterError
            If the rule does not suit the loss or the number of outputs.
        """
        penalised = self.l1 > 0, self.l2 > 0
        step_size = rule.step_size
        if step_size != "scheduled" and self.loss.name not in (HINGE.name, EPSILON_INSENSITIVE.name):
            raise ParameterError(
                f"PassiveAggressive goes with the losses 'hinge' and 'epsilon-insensitive'. Got '{self.loss}' instead."
            )
        if self.outputs > 1 and step_size != "scheduled":
            raise ParameterError(
                "PassiveAggressive goes with one output: learn each class against the rest in a run of its own."
            )
        if isinstance(rule, Sequential):
            return self._sequential(rule, workers)
        scaled = (workers == 1 if alone is None else alone) and self._is_scaled(rule)
        kernel = linear_build.descend(
            self.layout,
            access,
            rule.step,
            rule.skips_zero_gradient and not self.intercept_gradient,
            step_size,
            penalised,
            *output_functions(self.loss, self.outputs),
            self.loss.ours,
            len(rule.initial),
            self._is_far(rule),
            scaled,
            counters is not None,
        )
        constants: Any = tuple(np.float32(c) for c in rule.constants)
        if counters is not None:
            constants = constants, counters
        shares = self.shares() if any(penalised) and not scaled else np.empty(0, np.float32)
        l1, l2, parameter = np.float32(self.l1), np.float32(self.l2), float(self.loss.parameter)
        bias_rate, bias_gradient = np.float32(self.intercept_lr_multiplier), np.float32(self.intercept_gradient)
        # With locks and turns no update may be lost or damped, so each one is merged at once.
        at_once = access in ("locked", "turns")
        flush_rows, least = (1, np.float32(1)) if at_once else (FLUSH_ROWS, np.float32(1 / workers))
        flush_rows = flush_rows if workers > 1 else ALL_ROWS
        curvature = np.float32(self.loss.curvature)

        def rest(state: State, sync: Array) -> tuple[Any, ...]:
            shared = sync if counters is None else (sync, counters)
            return (
                *state, self.intercept, shares, l1, l2, self.class_weights, parameter, constants, shared, flush_rows,
                least, curvature, bias_rate, bias_gradient,
            )  # fmt: skip

        return RangeKernel(kernel, rest, turns=True) if access == "turns" else QueueKernel(kernel, rest)

    def replicas(self, rule: Rule, rows: int | str, workers: int) -> HotReplicas | None:
        """Return replicas of the hot coordinates for each worker, merged every ``rows`` rows.

        None where they do not pay.
        """
        width, dense = len(rule.initial), self.layout == "dense"
        if rows == 0 or workers == 1 or not can_have_replicas(rule, self.outputs):
            return None
        penalised = self.l1 > 0, self.l2 > 0
        apart = rows if isinstance(rows, int) else rows_between_merges(self.source, workers, dense, width)
        if apart == 0:
            return None
        plan = replica_layout(self.trained, 4 * width, self.loss.curvature, apart)
        kernel = linear_build.descend_buffered(
            self.layout, plan.everything, rule.step, rule.effective_step,
            rule.skips_zero_gradient and not self.intercept_gradient,
            penalised, output_functions(self.loss, self.outputs)[0], self.loss.bend, self.loss.ours, width,
            self._is_scaled(rule) and plan.everything,
        )  # fmt: skip
        shares = self.shares() if any(penalised) else np.empty(0, np.float32)
        lookup, shares = plan.lookups(shares)
        constants = tuple(np.float32(c) for c in rule.constants)
        l1, l2, parameter = np.float32(self.l1), np.float32(self.l2), float(self.loss.parameter)
        least, curvature = np.float32(1 / workers), np.float32(self.loss.curvature)
        bias_rate, bias_gradient = np.float32(self.intercept_lr_multiplier), np.float32(self.intercept_gradient)

        def rest(
            state: State, hot: Array, own: WorkerReplica, locks: Array, places: Array, shares: Array
        ) -> tuple[Any, ...]:
            return (
                *state, hot, own.copy, own.seen, lookup, places, own.control, plan.tiers, plan.stiff,
                self.intercept, shares, l1, l2, self.class_weights, parameter, constants, least, curvature,
                bias_rate, bias_gradient, locks, own.about_tiers,
            )  # fmt: skip

        merge = linear_build.settle(rule.effective_step)
        return HotReplicas(plan, kernel, rest, merge, workers, width, plan.places, shares)

    def max_workers(self, rule: Rule, workers: int) -> int:
        """Return the number of workers, of at most ``workers``, above which they would delay each other.

        Workers without replicas are hardly ever faster than one, where there could be replicas for fewer workers.
        Where there can be none, the writes of workers always conflict if parameters are few.
        """
        if can_have_replicas(rule, self.outputs):
            return max(1, min(workers, max_workers(self.source, self.layout == "dense", len(rule.initial))))
        few = 4 * len(rule.initial) * self.outputs * self.source.n_features < CROWDED
        return 1 if few else workers

    def _is_scaled(self, rule: Rule) -> bool:
        """Return whether L2 can be a common factor of all weights."""
        common_step = rule.uniform_step and not self.standardised and not self.l1
        return common_step and self.l2 > 0 and self.outputs == 1 and self.few_features

    def _is_far(self, rule: Rule) -> bool:
        """Return whether the parameters exceed a core's cache."""
        return self.outputs == 1 and 4 * len(rule.initial) * self.features > NEAR

    def _sequential(self, rule: Sequential, workers: int) -> BoundKernel:
        """Return the inner loop of the rule Sequential."""
        if workers > 1 or self.outputs > 1:
            raise ParameterError(
                "Sequential goes with one worker and one output: use the strategy 'serial', or the rule 'sgd'."
            )
        if self.l1 and not rule.l1:
            raise ParameterError("A penalty l1 needs a rule Sequential(l1=True).")
        function, _ = output_functions(self.loss, self.outputs)
        kernel = linear_build.descend_alone(self.layout, rule.step_size, function, self.loss.ours)
        alpha, share1 = rule.mixture(self.l1, self.l2)
        weighs = rule.track_objective and alpha > 0 and rule.step_size == "scheduled"

        def rest(state: State, sync: Array) -> tuple[Any, ...]:
            return (
                *state, self.intercept, alpha, share1, (self.l1 > 0, self.l2 > 0), self.class_weights,
                float(self.loss.parameter), float(self.intercept_lr_multiplier), float(self.intercept_gradient),
                int(rule.average_from),
                rule.track_objective, weighs,
            )  # fmt: skip

        return RangeKernel(kernel, rest, turns=False)


def can_have_replicas(rule: Rule, outputs: int) -> bool:
    """Return whether workers can have replicas of coordinates with a rule."""
    return outputs == 1 and len(rule.initial) <= 2 and rule.effective_step is not None


def output_functions(loss: Loss, outputs: int) -> tuple[Any, Any]:
    """Return the loss of one score, or that of the scores of all classes; the other one is None."""
    if outputs == 1:
        return loss.function, None
    return None, softmax if loss.name == SOFTMAX.name else _one_vs_rest(loss.function)


def losses(loss: Loss, outputs: int, classes: bool) -> Any:
    """Return the C function that adds up the losses of rows, whose labels are ``classes`` or numbers."""
    class_hit = "signs" if outputs == 1 else "classes"
    number_hit = "exp" if loss.link == "exp" else "identity"
    return loss_sums.losses(*output_functions(loss, outputs), class_hit if classes else number_hit, loss.ours)


def slopes(loss: Loss, outputs: int) -> Function:
    """Return the loop that computes losses and their derivatives by the scores."""
    kernel: Function = loss_sums.slopes(*output_functions(loss, outputs), loss.ours)
    return kernel


@cache
def _one_vs_rest(loss: Function) -> Function:
    """Return one function per loss, so that its kernels are compiled once."""
    return bind(one_vs_rest, loss=loss)
