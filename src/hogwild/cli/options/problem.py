"""Options of the problem and of the step size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hogwild.cli.problems import PROBLEMS, named
from hogwild.errors import ParameterError
from hogwild.registry import invalid_parameter

if TYPE_CHECKING:
    from typer.models import OptionInfo

    from hogwild.problems.problem import Problem
    from hogwild.schedules.schedule import Step

PANEL = "What is minimised"


def _option(help: str, *names: str, metavar: str | None = None, min: int | None = None) -> OptionInfo:
    option: OptionInfo = typer.Option(
        *names, help=help, rich_help_panel=PANEL, show_default=False, metavar=metavar, min=min
    )
    return option


@dataclass(frozen=True, slots=True)
class ProblemOptions:
    """Options of the objective. The problem decides the value of an option that is not given."""

    loss: Annotated[
        str | None,
        _option("linear, fm, ffm: hinge, squared-hinge, logistic (the default), softmax, modified-huber, perceptron, "
                "squared, huber[:width], epsilon-insensitive[:width], squared-epsilon-insensitive[:width], "
                "quantile[:share] or poisson; scikit-learn's names too, such as log_loss. "
                "matrix-completion: squared (the default) or bpr."),
    ] = None  # fmt: skip
    l1: Annotated[float | None, _option("Strength of the L1 penalty.")] = None
    l2: Annotated[
        str | None,
        _option("Strength of the L2 penalty; 0: none; auto: chosen on held-out rows or ratings. linear: scikit-learn's "
                "alpha, 1/(C n). Default: 1/n for n rows, less for rows of small values, or 0 with --l1; "
                "matrix-completion: 0.07, bpr 0.01.",
                metavar="FLOAT|auto"),
    ] = None  # fmt: skip
    l2_factors: Annotated[
        float | None,
        _option(
            "fm, ffm: strength of the L2 penalty on factors, weighted by how often they occur. --l2 auto keeps it "
            "where it is given."
        ),
    ] = None
    normalise: Annotated[
        bool | None,
        _option("fm, ffm: scale each row to length one. Default: with ffm.", "--normalise/--no-normalise"),
    ] = None
    intercept: Annotated[bool | None, _option("linear, fm, ffm: learn an intercept.", "--intercept/--no-intercept")] = (
        None
    )
    balanced: Annotated[
        bool | None, _option("linear, fm, ffm: let every class weigh the same in all.", "--balanced")
    ] = None
    sampling: Annotated[
        str | None,
        _option("How an epoch chooses its rows: split (each once, the default), replacement (as many uniform draws) or "
                "weighted (draws by the rows' own weights, with equal steps). sparse-mlp: split, replacement, whole, "
                "label-skew or size-skew."),
    ] = None  # fmt: skip
    rank: Annotated[
        int | None,
        _option("How many factors: fm of a feature, 8; ffm for each field, 4; matrix-completion of a user or an item, "
                "32.", min=1),
    ] = None  # fmt: skip
    hidden: Annotated[str | None, _option("sparse-mlp: widths of its layers, such as 64,64.")] = None
    batch: Annotated[int | None, _option("sparse-mlp: rows of one step (256).", min=1)] = None
    binary: Annotated[bool | None, _option("sparse-mlp: insist that every value is 1.", "--binary")] = None
    update: Annotated[str | None, _option("sparse-mlp: how embeddings are updated: adagrad or sgd.")] = None
    factor: Annotated[float | None, _option("sparse-mlp: the embeddings' step, times that of the layers.")] = None
    device: Annotated[str | None, _option("sparse-mlp: cpu or cuda.")] = None
    biases: Annotated[
        bool | None, _option("matrix-completion: learn biases of users and items.", "--biases/--no-biases")
    ] = None
    nonnegative: Annotated[bool | None, _option("matrix-completion: factors of at least zero.", "--nonnegative")] = None
    user: Annotated[str | None, _option("matrix-completion: the column with the user.", metavar="NAME")] = None
    item: Annotated[str | None, _option("matrix-completion: the column with the item.", metavar="NAME")] = None
    rating: Annotated[str | None, _option("matrix-completion: the column with the rating.", metavar="NAME")] = None
    seeds: Annotated[
        Path | None, _option("graph-cut: nodes whose parts are known, 'node part' on each line.")
    ] = None  # fmt: skip


def given(problem: str, options: ProblemOptions) -> Mapping[str, Any]:
    """Return the options that were given. An option of another problem raises an error that names its problems.

    >>> given("linear", ProblemOptions(l2="1e-4"))
    {'l2': 0.0001}
    """
    kind = named(problem)
    chosen = {field.name: getattr(options, field.name) for field in fields(options)}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    for name in chosen:
        if name not in kind.options:
            others = ", ".join(other for other, each in PROBLEMS.items() if name in each.options)
            option = name.replace("_", "-")
            raise ParameterError(f"--{option} goes with --problem {others}. Got --problem {problem}.")
    return {**chosen, **({"l2": _strength(chosen["l2"])} if "l2" in chosen else {})}


def _strength(text: str) -> float | str:
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise invalid_parameter("l2", "a number of at least 0, or auto", text) from None


def check_step(schedule: str | None, step: str | None) -> None:
    """Raise an error for an invalid schedule or step size, before any data is read."""
    from hogwild.schedules import named, step_of

    number = None if step is None else _number(step)
    if schedule is not None and step_of(named(schedule)) is None and number is not None and number != "auto":
        raise ParameterError(f"The schedule {schedule!r} finds its own steps. Leave out --step, or choose another one.")


def warmup_ends(schedule: str, epochs: int) -> bool:
    """Return whether a schedule has no warm-up that is longer than the run.

    >>> warmup_ends("warmup:5", 3), warmup_ends("warmup:5:cosine", 5), warmup_ends("cosine", 1)
    (False, True, True)
    """
    from hogwild.schedules import named, warmup_epochs

    return warmup_epochs(named(schedule)) <= epochs


def schedule_for(problem: Problem | None, rule: Any, schedule: str | None, step: str | None) -> Any:
    """Return the schedule argument of ``minimise``; None stands for the usual one of the rule.

    >>> schedule_for(None, None, None, None), schedule_for(None, None, "constant", "0.5")
    (None, Constant(step=0.5))
    >>> schedule_for(None, None, None, "2")
    Cosine(step=2.0, floor=0.0)
    """
    from hogwild import rules
    from hogwild.problems.problem import RowProblem
    from hogwild.schedules import starting_at

    usual = "cosine"
    if isinstance(problem, RowProblem):
        usual = rules.named(problem.defaults.rule if rule is None else rule).usual_schedule
    return starting_at(None if step is None else _number(step), schedule, usual)


def _number(step: str) -> Step:
    if step == "auto":
        return "auto"
    try:
        return float(step)
    except ValueError:
        raise ParameterError(
            f"The 'step' parameter must be a positive number or 'auto'. Got {step!r} instead."
        ) from None
