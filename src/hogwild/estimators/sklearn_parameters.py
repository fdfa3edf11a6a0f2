"""Parameters as scikit-learn names them: their valid values, and what they mean here."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from numbers import Integral
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from hogwild import losses, rules, strategies
from hogwild.estimators.device import DEVICES
from hogwild.jit import Function, bind
from hogwild.losses import Loss
from hogwild.machine import usable_cores
from hogwild.rules import SGD, PassiveAggressive, Rule, Sequential
from hogwild.schedules import Adaptive, Constant, InverseScaling, Optimal, Schedule
from hogwild.schedules.schedule import check_step
from hogwild.stopping import Budget
from hogwild.strategies import Hogwild, Serial, Strategy

OWN_PARAMS: dict[str, list[Any]] = {
    "n_jobs": [Integral, None],
    "strategy": [str, object],
    "rule": [str, object],
    "buffer": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
    "memory": [str, Integral, None],
    "identical_to_sklearn": ["boolean"],
    "device": [DEVICES],
}


def constraints(sklearn_class: type, *more: str) -> dict[str, Any]:
    """Return the constraints of a scikit-learn class, extended by the parameters that only ``hogwild`` has.

    ``more`` are the names of losses that scikit-learn lacks. A :class:`Loss` and a function are valid losses too, and
    our names of scikit-learn's losses.

    >>> from sklearn.linear_model import SGDRegressor
    >>> str(constraints(SGDRegressor, "poisson")["tol"][0])
    'a float in the range [0.0, inf)'
    """
    # An attribute of every estimator of scikit-learn, which has no types.
    found: dict[str, Any] = {**sklearn_class._parameter_constraints, **OWN_PARAMS}  # type: ignore[attr-defined]
    if "loss" in found:
        names = {*found["loss"][0].options, *more}
        found["loss"] = [StrOptions(names | {losses.our_name(name) for name in names}), Loss, callable]
    return found


def check_together(params: Mapping[str, Any], *, passive_aggressive_loss: str, partial: bool = False) -> None:
    """Raise an error for parameters that are valid alone and contradict each other.

    >>> check_together({"early_stopping": False, "learning_rate": "optimal", "alpha": 0}, passive_aggressive_loss="")
    Traceback (most recent call last):
    ValueError: alpha must be > 0 since learning_rate is 'optimal'. alpha is used to compute the optimal learning rate.
    """
    rate = params["learning_rate"]
    if params["early_stopping"] and partial:
        raise ValueError("early_stopping should be False with partial_fit")
    if rate == "optimal" and params["alpha"] == 0:
        raise ValueError(
            "alpha must be > 0 since learning_rate is 'optimal'. alpha is used to compute the optimal learning rate."
        )
    if rate in ("pa1", "pa2") and not _is_named(params["loss"], passive_aggressive_loss):
        raise ValueError(f"Learning rate '{rate}' only works with loss '{passive_aggressive_loss}'.")
    if params.get("identical_to_sklearn") and (params["strategy"] or params["rule"] or params["loss"] == "softmax"):
        raise ValueError(
            "identical_to_sklearn is for what scikit-learn has: leave out strategy, rule and the loss 'softmax', or "
            "identical_to_sklearn."
        )
    if params["penalty"] == "elasticnet" and params["l1_ratio"] is None:
        raise ValueError("l1_ratio must be set when penalty is 'elasticnet'")


def warn_deprecated(params: Mapping[str, Any]) -> None:
    """Warn about values that scikit-learn has deprecated and will refuse."""
    if params["power_t"] < 0:
        warnings.warn(
            "Negative values for `power_t` are deprecated in version 1.8 and will raise an error in 1.10. "
            "Use values in the range [0.0, inf) instead.",
            FutureWarning,
            stacklevel=5,
        )


def processors_left(wanted: int | None) -> int:
    """Return the number of workers for ``n_jobs``. In a nested parallel search, each job gets its share of the cores.

    >>> processors_left(None), processors_left(3)
    (1, 3)
    """
    if wanted == 1:
        return 1
    from joblib import effective_n_jobs  # type: ignore[import-untyped]
    from joblib.parallel import get_active_backend  # type: ignore[import-untyped]

    # joblib counts 1 in processes that may not start others, such as those of a multiprocessing pool. Workers of a fit
    # are threads, and a number that was given is the same in every process.
    workers = wanted if wanted is not None and wanted > 1 else int(effective_n_jobs(wanted))
    if wanted is not None and wanted < 0:  # joblib rounds a CPU quota up and counts cores differently
        workers = max(1, min(workers, usable_cores() + 1 + wanted))
    nested = (get_active_backend()[0].nesting_level or 0) > 0
    if not nested:
        return workers
    share = os.environ.get("OMP_NUM_THREADS", "")  # joblib sets this limit on threads in its processes
    return min(workers, int(share) if share.isdigit() and int(share) > 0 else 1)


WITH_WIDTH = ("huber", "epsilon-insensitive", "squared-epsilon-insensitive")
UNBOUNDED_SLOPES = ("squared", "squared-hinge", "squared-epsilon-insensitive", "poisson")
STEEPEST = 1e12
# Losses for which the frequency of merges of several workers is known: those with a bound of the second derivative, and
# the hinge loss of two classes, whose margins are spread by about 1. Residuals and scores of outliers may all be close
# to the kink of a loss. A step then changes the slopes of most rows.
OF_KNOWN_CURVATURE = (
    "hinge", "logistic", "squared-hinge", "modified-huber", "squared", "huber", "squared-epsilon-insensitive"
)  # fmt: skip
# Model of cost of the workers of ``minimise``, beside a single worker in one call of compiled code. On 16 cores and 8
# sets of 2 to 28 million non-zeros, the speed-up of k workers is about k^GAIN divided by the cost of merging, which is
# higher where the weights are too many for a replica of all of them. Starting takes too long for less non-zeros than
# WORTH_SHARING.
WORTH_SHARING, GAIN, REPLICATED, MERGING, MERGING_PART = 2**24, 0.6, 2**17, 1.2, 2.2
PASSIVE_AGGRESSIVE = {"pa1": 1, "pa2": 2}


@dataclass(frozen=True, slots=True)
class Parts:
    """Arguments of ``minimise`` that the parameters of an estimator stand for."""

    loss: Loss
    l1: float
    l2: float
    rule: Rule
    schedule: Schedule
    strategy: Strategy
    budget: Budget


def translate(
    params: Mapping[str, Any],
    *,
    epochs: int | None = None,
    step: float | None = None,
    precision: str = "float32",
    earlier: int = 0,
) -> Parts:
    """Translate the parameters of an estimator; ``epochs`` and ``step`` override its own values.

    ``precision`` is the type of the data. ``earlier`` is the number of updates that earlier calls made.

    >>> from hogwild import HogwildClassifier
    >>> parts = translate(HogwildClassifier(penalty="elasticnet", alpha=0.5, l1_ratio=0.25).get_params())
    >>> parts.loss, parts.l1, parts.l2, parts.schedule.alpha, parts.strategy
    (<loss hinge>, 0.125, 0.375, 0.5, Serial())
    """
    l1, l2 = _penalties(params)
    return Parts(
        clipped(loss_of(params)),
        l1,
        l2,
        _rule(params, precision, earlier, _monitored(params) == "training_objective" and epochs is None),
        _schedule(params, step, epochs == 1),
        strategy_of(params),
        _budget(params, epochs),
    )


def loss_of(params: Mapping[str, Any]) -> Loss:
    """Return the loss, with the parameter ``epsilon`` as its width if the loss has a width.

    >>> loss_of({"loss": "huber", "epsilon": 1.5})
    <loss huber:1.5>
    """
    name = params["loss"]
    if not isinstance(name, str):
        return losses.named(name)
    loss = losses.named(name)
    return loss.with_parameter(float(params["epsilon"])) if loss.name in WITH_WIDTH else loss


def _is_named(loss: object, name: str) -> bool:
    """Return whether a loss is given by this name, scikit-learn's or ours."""
    return isinstance(loss, str) and losses.our_name(loss) == losses.our_name(name)


def clipped(loss: Loss) -> Loss:
    """Return the same loss with its derivative clipped to +-1e12, as in scikit-learn.

    A fit that diverges in scikit-learn then diverges no faster here.

    >>> clipped(losses.named("squared"))(1e15, 0.0)[1]
    1000000000000.0
    """
    return replace(loss, function=_clipped(loss.function)) if loss.name in UNBOUNDED_SLOPES else loss


@cache
def _clipped(function: Function) -> Function:
    """Return the clipped function of a loss, cached so that its kernels are compiled once."""
    return bind(_with_clipped_slope, unclipped=function)


def _with_clipped_slope(z: float, y: float, parameter: float) -> tuple[float, float]:
    cost, slope = unclipped(z, y, parameter)  # type: ignore[name-defined]  # noqa: F821  (bound above)
    return cost, min(max(slope, -STEEPEST), STEEPEST)


def _penalties(params: Mapping[str, Any]) -> tuple[float, float]:
    alpha, penalty = float(params["alpha"]), params["penalty"]
    ratio = {"l1": 1.0, "l2": 0.0}.get(penalty, params["l1_ratio"])
    return (0.0, 0.0) if penalty is None else (alpha * ratio, alpha * (1 - ratio))


def _rule(params: Mapping[str, Any], precision: str, earlier: int, track_objective: bool) -> Rule:
    variant = PASSIVE_AGGRESSIVE.get(params["learning_rate"])
    if params["rule"] is not None:
        return rules.named(params["rule"])
    if same_as_sklearn(params):
        step_size = "scheduled" if variant is None else PassiveAggressive(variant).step_size
        average_from = max(1, int(params["average"]) - earlier) if params["average"] else 0
        stored = "float64" if average_from else precision
        ratio = {"l1": 1.0, "l2": 0.0}.get(params["penalty"], params["l1_ratio"])
        elastic_net = None if params["penalty"] is None else (float(params["alpha"]), float(ratio))
        return Sequential(step_size, _penalties(params)[0] > 0, average_from, stored, track_objective, elastic_net)
    return SGD() if variant is None else PassiveAggressive(variant)


def _schedule(params: Mapping[str, Any], step: float | None, once: bool) -> Schedule:
    rate, eta0 = params["learning_rate"], float(params["eta0"])
    if rate == "optimal":
        if params["rule"] is not None:  # the theory of "optimal" holds for plain SGD steps only
            return Constant("auto" if step is None else step)
        alpha = float(params["alpha"])
        typical = math.sqrt(1 / math.sqrt(alpha))  # expected size of a weight, and the size of the first step
        return Optimal(alpha, 1 / (typical * alpha))
    if rate == "invscaling":
        power = float(params["power_t"])
        return InverseScaling(eta0, power) if power >= 0 else _Rising(eta0, power)
    # Without a tolerance, or in a single epoch, nothing triggers a decrease of the step size.
    falling = rate == "adaptive" and params["tol"] is not None and not once
    return Adaptive(eta0) if falling else Constant(eta0)


@dataclass(frozen=True, slots=True)
class _Rising(InverseScaling):
    """Inverse scaling with a negative power, whose step size rises: deprecated by scikit-learn, and still accepted."""

    def __post_init__(self) -> None:
        check_step(self.step)


def same_as_sklearn(params: Mapping[str, Any]) -> bool:
    """Return whether all parameters exist in scikit-learn; a fit then makes the same updates as scikit-learn's.

    >>> from hogwild import HogwildClassifier
    >>> [same_as_sklearn(HogwildClassifier(**own).get_params()) for own in ({}, {"strategy": "serial"}, {"n_jobs": 2})]
    [True, False, False]
    """
    own = params["rule"] is not None or params["strategy"] is not None or params["loss"] == "softmax"
    own = own or params["device"] == "cuda"
    return not own and isinstance(strategy_of(params), Serial)


def with_useful_workers(
    params: Mapping[str, Any], nonzeros: int, features: int, outputs: int, *, dense: bool
) -> Mapping[str, Any]:
    """Return the parameters with a single worker, unless workers of ``minimise`` take less time.

    A fit by a single worker is one call of compiled code, which divides its work among ``n_jobs`` threads where that is
    faster. Where this code has no loop for several threads, workers of ``minimise`` pay for large data. Parameters by
    which a user chooses how workers share weights are left as they are.

    >>> from hogwild import HogwildClassifier
    >>> plain, averaged = (HogwildClassifier(n_jobs=8, average=each).get_params() for each in (False, True))
    >>> [with_useful_workers(each, 10**8, 1000, outputs=1, dense=False)["n_jobs"] for each in (plain, averaged)]
    [1, 8]
    >>> with_useful_workers(averaged, 10_000, 1000, outputs=1, dense=False)["n_jobs"]
    1
    """
    if params["identical_to_sklearn"]:
        return {**params, "n_jobs": 1}
    chosen = params["strategy"] is not None or params["rule"] is not None or params["buffer"] != "auto"
    if chosen or params["loss"] == "softmax" or params["device"] == "cuda":
        return params
    speed_up = processors_left(params["n_jobs"]) ** GAIN / (MERGING if features <= REPLICATED else MERGING_PART)
    pays = outputs == 1 and nonzeros >= WORTH_SHARING and speed_up > 1 and (dense or not has_parallel_loop(params))
    return params if pays else {**params, "n_jobs": 1}


def has_parallel_loop(params: Mapping[str, Any]) -> bool:
    """Return whether compiled code for several threads has all that is asked for, if rows are sparse.

    >>> from hogwild import HogwildClassifier
    >>> [has_parallel_loop(HogwildClassifier(penalty=name).get_params()) for name in ("l2", "l1")]
    [True, False]
    """
    scheduled = params["learning_rate"] in ("optimal", "constant", "invscaling")
    absent = ("average", "early_stopping", "verbose")
    if not scheduled or not params["shuffle"] or _penalties(params)[0] or any(params[name] for name in absent):
        return False
    return "nu" not in params and loss_of(params).name in OF_KNOWN_CURVATURE


def strategy_of(params: Mapping[str, Any]) -> Strategy:
    """Return the strategy: a single worker, or several workers without locks unless the user names another strategy.

    >>> from hogwild import HogwildClassifier
    >>> [strategy_of(HogwildClassifier(n_jobs=2, strategy=name).get_params()) for name in (None, "locked")]
    [Hogwild(workers=2, buffer='auto'), Locked(workers=2)]
    """
    strategy = params["strategy"]
    if strategy is not None and not isinstance(strategy, str):
        return strategies.named(strategy)
    if params["device"] == "cuda":
        return Hogwild() if strategy is None else strategies.named(strategy)
    workers = processors_left(params["n_jobs"])
    if strategy is not None:
        return strategies.named(strategy, workers)
    return Serial() if workers == 1 else Hogwild(workers, params["buffer"])


def _budget(params: Mapping[str, Any], epochs: int | None) -> Budget:
    tol, stalls = params["tol"], params["n_iter_no_change"]
    if epochs is not None:
        return Budget(epochs=epochs)
    if tol is None:
        return Budget(epochs=params["max_iter"])
    return Budget(epochs=params["max_iter"], tolerance=float(tol), stall_epochs=stalls, monitor=_monitored(params))


def _monitored(params: Mapping[str, Any]) -> str:
    """Return the name of the value by which the fit detects convergence."""
    if params["tol"] is not None and params["early_stopping"]:
        return "score"
    if same_as_sklearn(params):
        return "training_objective"
    return "loss" if params["learning_rate"] in PASSIVE_AGGRESSIVE else "objective"


def stabilised(schedule: Schedule, loss: Loss, length: Callable[[], float]) -> Schedule:
    """Return the same schedule, or an optimal one with smaller first steps for a loss of unbounded derivative.

    ``length()`` is the largest squared length of a row, intercept included, times its weight. A step size above 2 /
    (curvature * length) increases such a loss, and with the loss the next derivative. scikit-learn, and therefore a
    single worker here, lets derivatives grow for hundreds of epochs, clipped at 1e12.

    >>> stabilised(Optimal(0.01, 10.0), losses.named("squared"), lambda: 10.0)
    Optimal(alpha=0.01, t0=1000.0)
    """
    if not isinstance(schedule, Optimal) or loss.name not in UNBOUNDED_SLOPES:
        return schedule
    assert schedule.alpha is not None
    assert schedule.t0 is not None
    least_t0 = loss.curvature * length() / schedule.alpha
    return Optimal(schedule.alpha, least_t0) if schedule.t0 < least_t0 / 2 else schedule


def averaged_share(average: bool | int, rows: int, epochs: int, earlier: int = 0) -> float:
    """Return the last share of a run over which iterates are averaged, starting at update number ``average``.

    >>> averaged_share(True, 100, 10), averaged_share(251, 100, 10), averaged_share(2_000, 100, 10)
    (1.0, 0.75, 0.0)
    """
    if not average:
        return 0.0
    return max(0.0, 1 - max(0, int(average) - 1 - earlier) / (rows * epochs))
