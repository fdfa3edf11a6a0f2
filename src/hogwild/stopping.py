"""Budget of a run, its stop conditions, and divergence.

The stop conditions are functions of records alone, so that all kinds of runs stop in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.errors import DivergedError, ParameterError
from hogwild.events import Record
from hogwild.keywords import advised
from hogwild.parallel import in_parallel
from hogwild.registry import invalid_parameter

# Values (non-zeros and features) that a default budget passes over in a run: two tenths of a second of training. The
# objective of AdaGrad then is within 0.5% of the optimum (decision 35).
AFFORDABLE = 2**24

MANY = 2**18  # numbers that take longer to look at than waking a thread

MONITORED = ("objective", "loss", "training_objective", "score")
# Figures of held-out data that are better if they are larger, and those that are better if they are smaller.
RISING = ("score", "test_accuracy", "test_r2", "test_auc")
FALLING = ("test_loss", "test_rmse")


@advised(epochs="Write hogwild.Budget(epochs=3).", limit="Write hogwild.Budget(seconds=60).")
@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a run; the run stops at the limit that it reaches first.

    Parameters
    ----------
    epochs : int, optional
        Number of epochs. Without ``epochs`` and ``seconds`` the size of the data decides: 1,000 for very small data, 10
        for large data.
    seconds : float, optional
        Seconds of training, those of a search for the penalty (``l2="auto"``) included.
    target : float, optional
        Loss at which the run stops: of the held-out data if there is any, else of the training data.
    patience : int, optional
        Epochs without a better held-out loss, or ``monitor`` if that is a held-out figure, after which the run stops.
        The run then returns its best parameters.
    tolerance : float, optional
        Least improvement of the monitored value on its best within ``stall_epochs``.
    stall_epochs : int, default 5
        Consecutive epochs without an improvement by ``tolerance`` after which the run stops.
    window : int, optional
        Number of records k for another form of stalling: the run stops when the best monitored value of the last k
        records is not below that of the k records before them by more than ``tolerance``, or 0 without one. Where the
        training loss is a mean over the updates of an epoch, only the records of whole epochs count.
    monitor : str, default "objective"
        Value that ``tolerance`` and ``window`` apply to: "objective", "loss", "training_objective" (the objective
        summed over the updates of an epoch, by a rule that tracks it), or a figure of the held-out data, which
        ``patience`` applies to as well: "score" (the accuracy or R^2) or the name of a figure in the records, such as
        "test_f1" of ``Module(metrics={"f1": ...})``.
    mode : {"min", "max"}, optional
        Whether that figure should fall or rise; needed for a metric of your own.

    Raises
    ------
    ParameterError
        If a limit is not a positive number, or ``monitor`` is unknown.

    Examples
    --------
    >>> Budget().for_data(work=340_000).epochs, Budget(seconds=60).for_data(10).epochs is None
    (49, True)
    """

    epochs: int | None = None
    seconds: float | None = None
    target: float | None = None
    patience: int | None = None
    tolerance: float | None = None
    stall_epochs: int = 5
    window: int | None = None
    monitor: str = "objective"
    mode: str | None = None

    def __post_init__(self) -> None:
        for name, kind, numbers in (
            ("epochs", "a positive integer", Integral),
            ("seconds", "a positive number", Real),
            ("patience", "a positive integer", Integral),
            ("stall_epochs", "a positive integer", Integral),
            ("window", "a positive integer", Integral),
        ):
            value = getattr(self, name)
            if (value is not None or name == "stall_epochs") and not (_is_number(value, numbers) and value > 0):
                raise invalid_parameter(name, kind, value)
            if value is not None and not isinstance(value, (int, float)):  # NumPy's small integers overflow later
                object.__setattr__(self, name, int(value) if numbers is Integral else float(value))
        self._check_monitor()
        for name in ("target", "tolerance"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value, Real) and not math.isnan(value)):
                raise invalid_parameter(name, "a number", value)

    def _check_monitor(self) -> None:
        if self.monitor not in MONITORED and not str(self.monitor).startswith("test_"):
            raise invalid_parameter(
                "monitor", f"one of {', '.join(MONITORED)}, or a held-out figure such as 'test_f1'", self.monitor
            )
        known = (*MONITORED, *RISING, *FALLING)
        if self.mode is None and self.monitor not in known:
            raise ParameterError(
                f"To monitor {self.monitor!r}, say whether it should rise or fall: mode='max' or mode='min'."
            )
        usual = "max" if self.monitor in RISING else "min"
        if self.mode not in (None, "min", "max") or (self.monitor in known and self.mode not in (None, usual)):
            raise invalid_parameter("mode", "'min' or 'max'" if self.monitor not in known else repr(usual), self.mode)

    @property
    def monitors_test(self) -> bool:
        """Whether the monitored value is a figure of the held-out data."""
        return self.monitor == "score" or self.monitor.startswith("test_")

    @property
    def depends_on_loss(self) -> bool:
        """Whether the losses of records decide when the run stops."""
        return (self.target, self.tolerance, self.window) != (None, None, None)

    def usually(self, epochs: int | None) -> Budget:
        """Return this budget with a default number of epochs, if neither epochs nor seconds limit it.

        Parameters
        ----------
        epochs : int or None
            Default number of epochs.

        Returns
        -------
        Budget
            This budget, or a copy with ``epochs``.

        Examples
        --------
        >>> Budget().usually(30).epochs, Budget(epochs=5).usually(30).epochs
        (30, 5)
        """
        return self if self.epochs is not None or self.seconds is not None else replace(self, epochs=epochs)

    def for_data(self, work: int) -> Budget:
        """Return this budget with a number of epochs that suits the data, if neither epochs nor seconds limit it.

        Parameters
        ----------
        work : int
            Number of values that an epoch passes over: the non-zeros of the data and the features. The features count
            because the work done once an epoch visits each of them.

        Returns
        -------
        Budget
            This budget, or a copy with 2**24 / ``work`` epochs, at least 10 and at most 1,000.
        """
        if self.epochs is not None or self.seconds is not None:
            return self
        return replace(self, epochs=max(10, min(1_000, round(AFFORDABLE / max(1, work)))))


def _is_number(value: object, numbers: type) -> bool:
    return isinstance(value, numbers) and not isinstance(value, bool)


def _whole(text: str) -> int:
    """Return the whole number that a text such as "1000" or "1e3" stands for; raise ValueError if it is none."""
    number = float(text)
    if not number.is_integer():
        raise ValueError(text)
    return int(number)


@dataclass(frozen=True, slots=True)
class RecordInterval:
    """Interval of the records of a run, besides the record of each epoch.

    >>> RecordInterval.parse(1000), RecordInterval.parse("0.5s")
    (RecordInterval(updates=1000, seconds=None), RecordInterval(updates=None, seconds=0.5))
    """

    updates: int | None = None
    seconds: float | None = None

    @classmethod
    def parse(cls, every: int | str | None) -> RecordInterval:
        """Return the interval of a number of updates, or of a number of seconds with the letter s.

        Raises
        ------
        ParameterError
            If it is neither, or not positive.
        """
        if every is None:
            return cls()
        text = str(every).strip()
        try:
            found = cls(seconds=float(text[:-1])) if text.endswith("s") else cls(updates=_whole(text))
        except (ValueError, OverflowError):
            found = cls(updates=0)
        number = found.updates if found.seconds is None else found.seconds
        if isinstance(every, bool) or number is None or not 0 < number < math.inf:
            raise invalid_parameter("every", "a number of updates such as 1000, or of seconds such as '0.5s'", every)
        return found


def budget_of(budget: Budget | int | None) -> Budget:
    """Return a budget from a number of epochs; a budget is returned as it is."""
    if budget is not None and not isinstance(budget, Budget) and not _is_number(budget, Integral):
        raise invalid_parameter("budget", "a number of epochs, or Budget(epochs=..., ...)", budget)
    return budget if isinstance(budget, Budget) else Budget(epochs=budget)


def stop_reason(
    budget: Budget, history: Sequence[Record], *, held_out: bool, best_epoch: int, stalled_epochs: int,
    evaluated: bool = True,
) -> str:  # fmt: skip
    """Return the condition on the losses that the last record of a history meets; empty if it meets none.

    ``held_out`` says whether the run has held-out data. The record of an epoch that was not evaluated has no held-out
    loss, and then meets neither the target nor the patience.

    ``evaluated`` says whether the training losses are those of all training data. Otherwise they are means over the
    samples since the beginning of an epoch, and only those of whole epochs are compared: a few samples would meet a
    condition by chance.

    >>> stop_reason(Budget(target=0.1), [{"epoch": 3, "loss": 0.09}], held_out=False, best_epoch=3, stalled_epochs=0)
    'target'
    >>> late = {"epoch": 7, "loss": 0.2, "test_loss": 0.4}
    >>> stop_reason(Budget(patience=2), [late], held_out=True, best_epoch=5, stalled_epochs=0)
    'patience'
    """
    record = history[-1]
    within = not evaluated and record["epoch"] <= (history[-2]["epoch"] if len(history) > 1 else 0)
    watched = record.get("test_loss") if held_out else None if within else record.get("loss")
    if budget.target is not None and watched is not None and watched <= budget.target:
        return "target"
    if budget.patience and "test_loss" in record and record["epoch"] - best_epoch >= budget.patience:
        return "patience"
    if budget.window is not None:
        if evaluated or budget.monitors_test:
            return "tolerance" if window_has_stalled(history, budget) else ""
        return "tolerance" if not within and window_has_stalled(list(epoch_ends(history)), budget) else ""
    return "tolerance" if budget.tolerance is not None and stalled_epochs >= budget.stall_epochs else ""


def window_has_stalled(history: Sequence[Record], budget: Budget) -> bool:
    """Return whether the best value of the last ``window`` records is no better than that of the window before.

    >>> noisy = [{"objective": value} for value in (0.5, 0.3, 0.35, 0.31)]
    >>> window_has_stalled(noisy, Budget(window=2)), window_has_stalled(noisy[:3], Budget(window=2))
    (True, False)
    """
    size = budget.window or 0
    found = [monitored_value(record, budget) for record in history[-2 * size :]]
    values = [value for value in found if value is not None]
    if len(values) < 2 * size:
        return False
    return min(values[size:]) >= min(values[:size]) - (budget.tolerance or 0.0)


def limit_reached(budget: Budget, epoch: int, seconds: float) -> str:
    """Return the limit of the budget that is reached, "epochs" or "seconds"; empty if neither is.

    >>> limit_reached(Budget(epochs=3), 3, 0.1), limit_reached(Budget(seconds=1), 3, 0.1)
    ('epochs', '')
    """
    if budget.epochs and epoch >= budget.epochs:
        return "epochs"
    return "seconds" if budget.seconds is not None and seconds >= budget.seconds else ""


@dataclass(frozen=True, slots=True)
class Stall:
    """Lowest monitored value so far, and the number of consecutive epochs that did not improve on it by the tolerance.

    >>> Stall().after(1.0, 0.1).after(0.95, 0.1).after(0.94, 0.1)
    Stall(best=0.94, epochs=2)
    """

    best: float = float("inf")
    epochs: int = 0

    def after(self, value: float, tolerance: float) -> Stall:
        """Return the stall after another epoch with this value."""
        fell = value <= self.best - tolerance or self.best == float("inf")
        return Stall(min(self.best, value), 0 if fell else self.epochs + 1)


def monitored_value(record: Record, budget: Budget) -> float | None:
    """Return the value of a record that should fall, the negative of one that should rise; None if it has none.

    Raises
    ------
    ParameterError
        If held-out data was evaluated, and its figures do not have the monitored one.

    Examples
    --------
    >>> monitored_value({"loss": 0.3, "test_loss": 0.2, "test_accuracy": 0.9}, Budget(monitor="score"))
    -0.9
    """
    if budget.monitor == "score":
        score = record.get("test_accuracy", record.get("test_r2"))
        return None if score is None else -float(score)
    if budget.monitor not in record:
        if budget.monitors_test and "test_loss" in record:
            known = ", ".join(name for name in record if name.startswith("test_"))
            raise ParameterError(
                f"The budget monitors {budget.monitor!r}, and the records of this run have {known}: monitor one of "
                "these, or give Module(metrics=...)."
            )
        return None
    value = float(record[budget.monitor])
    return -value if budget.mode == "max" or budget.monitor in RISING else value


def held_out_value(record: Record, budget: Budget) -> float:
    """Return the held-out value that ``patience`` waits for to fall: the monitored one if it is held-out, or the loss.

    It is infinite if the record has none.

    >>> record = {"test_loss": 0.2, "test_f1": 0.7}
    >>> held_out_value(record, Budget()), held_out_value(record, Budget(monitor="test_f1", mode="max"))
    (0.2, -0.7)
    """
    value = monitored_value(record, budget) if budget.monitors_test else record.get("test_loss")
    return math.inf if value is None else float(value)


def epoch_ends(history: Iterable[Record]) -> Iterator[Record]:
    """Yield the records at the ends of epochs, without those between them.

    >>> [record["updates"] for record in epoch_ends([{"epoch": e, "updates": u} for e, u in ((0, 5), (1, 9), (1, 12))])]
    [9]
    """
    last = 0
    for record in history:
        epoch = record.get("epoch", last + 1)
        if epoch > last:
            last = epoch
            yield record


def stall_of(history: Iterable[Record], budget: Budget) -> Stall:
    """Return the stall at the end of a history, for runs that keep no state but their records.

    >>> stall_of([{"objective": 0.5}, {"objective": 0.49}, {"objective": 0.48}], Budget(tolerance=0.1)).epochs
    2
    """
    stall = Stall()
    for record in epoch_ends(history) if budget.tolerance is not None else ():
        value = monitored_value(record, budget)
        if value is not None:
            stall = stall.after(value, budget.tolerance or 0.0)
    return stall


# Multiple of the initial loss (or of 1, if that is larger) above which a loss counts as diverged.
DIVERGENCE_FACTOR = 1e3
MOST_HALVINGS = 5  # number of halvings of the step size after which a run fails


@dataclass(slots=True)
class DivergenceGuard:
    """Guard that compares losses with the initial loss, and counts the halvings of the step size.

    >>> guard = DivergenceGuard(start=0.7)
    >>> guard.has_diverged(0.5), guard.has_diverged(float("nan")), guard.has_diverged(1e9)
    (False, True, True)
    """

    start: float
    halvings: int = 0
    factor: float = DIVERGENCE_FACTOR  # multiple of the initial loss that counts as diverged

    @property
    def limit(self) -> float:
        """The largest loss that does not count as diverged: ``factor`` times the initial loss (or 1, if larger)."""
        return self.factor * max(self.start, 1.0)

    def has_diverged(self, *losses: float) -> bool:
        """Return whether any loss is not finite, or above the limit."""
        return not all(math.isfinite(loss) and loss <= self.limit for loss in losses)

    def halve(self) -> float:
        """Halve the step size, and return the remaining factor.

        Raises
        ------
        DivergedError
            After five halvings, because further ones would not help.
        """
        if self.halvings == MOST_HALVINGS:
            raise DivergedError(
                f"The loss exploded {MOST_HALVINGS + 1} times, the last time with {self.scale:.3g} of the step. "
                "Give a smaller step (or step='auto'), scale the features to similar sizes, or look for outliers "
                "among the labels."
            )
        self.halvings += 1
        return self.scale

    @property
    def scale(self) -> float:
        """The factor of the step size after all halvings."""
        return 2.0**-self.halvings


def all_finite(parts: Iterable[NDArray[Any]]) -> bool:
    """Return whether all parameters are finite.

    The loss alone does not show NaN parameters: the hinge loss takes a NaN margin for a good one, with loss 0.

    >>> all_finite([np.ones(3), np.zeros((2, 1))]), all_finite([np.array([1.0, np.nan])])
    (True, False)
    """
    return all(all(in_parallel(_is_finite, _pieces(part))) for part in parts)


def _is_finite(piece: NDArray[Any]) -> bool:
    return bool(np.isfinite(piece).all())


def _pieces(part: NDArray[Any]) -> list[NDArray[Any]]:
    return [part] if len(part) <= MANY else np.array_split(part, -(-len(part) // MANY))
