"""Sharpness of a minimum: the highest loss near it, mean changes in p-balls, and changes along each coordinate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hogwild.landscape.loss_slices import Where, filter_units, in_ball, matching_radius, on_sphere, p_norm
from hogwild.landscape.surface import Surface, Vector, checked
from hogwild.registry import invalid_parameter


@dataclass(frozen=True, slots=True, eq=False)
class Sharpness:
    """Highest loss found within ``rho`` of a point, and its position."""

    rho: float
    loss: float  # loss at the centre of the ball
    highest: float
    where: Vector

    @property
    def rise(self) -> float:
        """The rise from the centre to the highest loss, which SAM (Foret et al. 2021) calls sharpness."""
        return self.highest - self.loss


def sharpness(
    surface: Surface, at: Vector, rho: float = 0.05, steps: int = 1, seed: int = 0, p: float = 2
) -> Sharpness:  # fmt: skip
    """Search for the highest loss within a ball of radius ``rho`` in the p-norm, by steepest ascent.

    A single step is that of SAM (Foret et al. 2021): ``rho`` along the direction of steepest ascent in the p-norm,
    which is the gradient for p = 2, its signs for infinity, and its largest coordinate for p = 1. Each further step
    goes ``rho`` along the direction of steepest ascent at its position, and is scaled back onto the ball. The result is
    the highest loss of all steps. Where the gradient is zero the first step goes in a random direction, and several
    steps are needed to find the direction of ascent.

    >>> from hogwild.landscape.surface import Quadratic
    >>> bowl = Quadratic(np.diag([8.0, 1.0]))
    >>> sharpness(bowl, np.zeros(2), rho=0.5, steps=20).rise
    1.0
    """
    at = checked(surface, at)
    if not 0 < rho < float("inf"):
        raise invalid_parameter("rho", "a positive number", rho)
    if steps < 1:
        raise invalid_parameter("steps", "a positive integer", steps)
    random = on_sphere(np.random.default_rng(seed), surface.size, p)
    loss, move = surface.loss(at), np.zeros(surface.size)
    highest, where = -float("inf"), at
    for _ in range(steps):
        gradient = surface.gradient(at + move)
        move = move + rho * (_steepest(gradient, p) if gradient.any() else random)
        length = p_norm(move, p)
        move = move * (rho / length) if length > rho else move
        there = surface.loss(at + move)
        if there > highest:
            highest, where = there, at + move
    return Sharpness(rho, loss, highest, where)


def _steepest(gradient: Vector, p: float) -> Vector:
    """Return the direction of p-norm 1 along which the loss rises fastest."""
    if p == 2:
        return np.asarray(gradient / np.linalg.norm(gradient))
    sizes = np.abs(gradient)
    direction = np.sign(gradient) * (sizes / sizes.max()) ** (math.inf if p == 1 else 1 / (p - 1))
    return np.asarray(direction / p_norm(direction, p))


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Changes of one quantity, a value for each sampled move.

    >>> changes = Changes(np.array([1.0, 2.0, 3.0]))
    >>> changes.mean, round(changes.error, 3), round(changes.spread, 3), changes.most
    (2.0, 0.577, 0.816, 3.0)
    """

    each: Vector
    population: float = math.inf  # number of values from which the sample was drawn, without repetition

    @property
    def mean(self) -> float:
        """The mean over the moves."""
        return float(self.each.mean())

    @property
    def error(self) -> float:
        """The standard error of the mean: zero if the sample is the whole population, nan for a sample of one."""
        count = len(self.each)
        if count >= self.population:
            return 0.0
        if count < 2:
            return math.nan
        return float(self.each.std(ddof=1)) * math.sqrt((1 - count / self.population) / count)

    @property
    def spread(self) -> float:
        """The standard deviation over the moves."""
        return float(self.each.std())

    @property
    def most(self) -> float:
        """The largest change."""
        return float(self.each.max())


def lengths(surface: Surface, at: Vector, units: ArrayLike) -> Vector:
    """Return the length of one unit along each coordinate: "equal", "standardised", "filters" or the caller's.

    "equal" is 1 for each coordinate. "standardised" is ``surface.units``: one over the standard deviation of the
    feature for a ``Linear``, the root mean square of the tensor for a ``Module``. "filters" is the root mean square of
    the parameters of each block (Li et al. 2018).

    >>> from hogwild.landscape.surface import Quadratic
    >>> bowl, at = Quadratic(np.eye(2)), np.array([3.0, 4.0])
    >>> lengths(bowl, at, "equal"), lengths(bowl, at, "filters"), lengths(bowl, at, [1, 2])
    (array([1., 1.]), array([3.53553391, 3.53553391]), array([1., 2.]))
    """
    if not isinstance(units, str):
        return checked(surface, units, "units")
    if units == "equal":
        return np.ones(surface.size)
    if units == "standardised":
        return surface.units(at)
    if units == "filters":
        return filter_units(at, surface.blocks)
    raise invalid_parameter("units", "'equal', 'standardised', 'filters' or a vector", units, ("standardised",))


@dataclass(frozen=True, slots=True, eq=False)
class Neighbourhood:
    """Changes from the centre of a p-ball to random points in it (``where`` is "ball") or on it ("sphere").

    ``loss`` holds the changes of the loss, negative where the loss falls. ``gradient_norm`` holds the changes of the
    2-norm of the gradient, negative where the gradient is shorter than at the centre. ``gradient`` holds the 2-norms of
    the differences of both gradients. At a point where the gradient is zero, the last two are equal. Each has a
    ``mean``, its standard ``error``, a ``spread``, the ``most`` and ``each`` value.
    """

    radius: float
    p: float
    where: Where
    loss: Changes
    gradient: Changes
    gradient_norm: Changes


def ball(
    surface: Surface, at: Vector, radius: float, p: float = 2, samples: int = 32, seed: int = 0,
    units: ArrayLike = "equal",
) -> Neighbourhood:  # fmt: skip
    """Measure the changes of loss and gradient from a point to points drawn uniformly in a p-ball around it.

    Parameters
    ----------
    surface : Surface
        The objective.
    at : array
        Centre of the ball.
    radius : float
        Radius of the ball in the p-norm, in units.
    p : float, default 2
        Order of the norm, from 1 to infinity: 1 is a diamond, 2 a round ball, infinity a cube.
    samples : int, default 32
        Number of random points. Each costs one evaluation of the loss and one of the gradient.
    seed : int, default 0
        Seed of the points. With the same seed two solutions are compared on the same moves.
    units : {"equal", "standardised", "filters"} or array, default "equal"
        Length of one unit along each coordinate, see ``lengths``. The ball, and the norm of the gradient, are those
        in coordinates divided by their units.

    Returns
    -------
    Neighbourhood
        Changes of the loss, of the gradient and of its norm, with their standard errors.

    Raises
    ------
    ParameterError
        If ``p`` is below 1, ``radius`` is not positive, ``samples`` is below 1, or ``units`` is unknown.

    References
    ----------
    Barthe, Guedon, Mendelson and Naor (2005), "A probabilistic approach to the geometry of the l_p^n-ball", Annals of
    Probability 33(2).

    Examples
    --------
    >>> from hogwild.landscape.surface import Quadratic
    >>> found = ball(Quadratic(3 * np.eye(2)), np.zeros(2), radius=2.0, samples=1000)
    >>> abs(found.loss.mean - 2.0**2 / (2 * (2 + 2)) * 6) < 3 * found.loss.error
    True
    """
    return _around(surface, at, radius, p, "ball", samples, seed, units)


def sphere(
    surface: Surface, at: Vector, radius: float, p: float = 2, directions: int = 32, seed: int = 0,
    units: ArrayLike = "equal",
) -> Neighbourhood:  # fmt: skip
    """Measure the changes of loss and gradient at a distance of ``radius`` in the p-norm, in random directions.

    The parameters are those of :func:`ball`; ``directions`` is the number of random points. The ``most`` of the result
    is the largest change among the sampled directions. In many dimensions hardly any sampled direction is near the
    steepest one. :func:`sharpness` climbs towards the steepest direction, and :func:`spectrum` computes it.

    >>> from hogwild.landscape.surface import Quadratic
    >>> found = sphere(Quadratic(3 * np.eye(2)), np.zeros(2), radius=2.0)
    >>> found.loss.mean, found.gradient.most, round(found.gradient_norm.mean, 12)
    (6.0, 6.0, 6.0)
    """
    if directions < 1:
        raise invalid_parameter("directions", "a positive integer", directions)
    return _around(surface, at, radius, p, "sphere", directions, seed, units)


def _around(
    surface: Surface, at: Vector, radius: float, p: float, where: Where, samples: int, seed: int, units: ArrayLike
) -> Neighbourhood:  # fmt: skip
    at = checked(surface, at)
    if not 0 < radius < float("inf"):
        raise invalid_parameter("radius", "a positive number", radius)
    if samples < 1:
        raise invalid_parameter("samples", "a positive integer", samples)
    rng, each = np.random.default_rng(seed), lengths(surface, at, units)
    draw = in_ball if where == "ball" else on_sphere
    loss, gradient = surface.loss(at), each * surface.gradient(at)
    norm = float(np.linalg.norm(gradient))
    rises, turns, norms = np.empty(samples), np.empty(samples), np.empty(samples)
    for k in range(samples):
        there = at + radius * each * draw(rng, surface.size, p)
        slope = each * surface.gradient(there)
        rises[k] = surface.loss(there) - loss
        turns[k] = np.linalg.norm(slope - gradient)
        norms[k] = np.linalg.norm(slope) - norm
    return Neighbourhood(radius, p, where, Changes(rises), Changes(turns), Changes(norms))


@dataclass(frozen=True, slots=True, eq=False)
class Sensitivity:
    """Changes of the loss and of the gradient's norm when a coordinate is moved up or down by ``radius`` of its units.

    The norm is the 2-norm of the gradient in coordinates divided by their units.
    """

    radius: float
    coordinates: NDArray[np.int64]
    units: Vector  # length of one unit along each coordinate
    up: Vector  # change of the loss
    down: Vector
    gradient_up: Vector  # change of the norm of the gradient
    gradient_down: Vector
    population: float = math.inf  # number of coordinates from which these were drawn at random

    @property
    def mean(self) -> Vector:
        """The mean rise of both moves. At a minimum it is about ``(radius * unit)^2 / 2`` times the curvature."""
        return (self.up + self.down) / 2

    @property
    def most(self) -> Vector:
        """The larger rise of both moves."""
        return np.maximum(self.up, self.down)

    @property
    def gradient_mean(self) -> Vector:
        """The mean change of the gradient's norm of both moves, for each coordinate."""
        return (self.gradient_up + self.gradient_down) / 2

    @property
    def loss(self) -> Changes:
        """The mean rise of each coordinate, as a sample of all coordinates, whose mean has a standard error."""
        return Changes(self.mean, self.population)

    @property
    def gradient_norm(self) -> Changes:
        """The mean change of the gradient's norm of each coordinate, as a sample of all coordinates."""
        return Changes(self.gradient_mean, self.population)


def sensitivity(
    surface: Surface, at: Vector, radius: float = 0.1, coordinates: int | Sequence[int] | None = None,
    units: ArrayLike | None = None, seed: int = 0,
) -> Sensitivity:  # fmt: skip
    """Measure the changes of loss and gradient norm when one coordinate at a time moves ``radius`` units up and down.

    Units make coordinates comparable; they are "standardised" unless the caller gives others, see ``lengths``. The
    unit of a weight of a ``Linear`` is one over the standard deviation of its feature. Such a move equals a move of
    ``radius`` after all features are scaled to a deviation of 1: scores change by ``radius`` times the scaled feature.
    The unit of an intercept, and of a feature without variance, is 1. The unit of a parameter of a ``Module`` is the
    root mean square of its tensor (the norm over the root of the size). It is 1 where that is zero. The norm of the
    gradient is that in the same coordinates: each derivative is multiplied by its unit.

    Each coordinate costs two evaluations of the loss and two of the gradient on all data. ``coordinates`` lists the
    coordinates, or is the number of random ones. ``loss`` and ``gradient_norm`` of the result have the mean over all
    coordinates and its standard error, which is zero if every coordinate was measured. The error is meaningless for
    coordinates that the caller selected.

    >>> from hogwild.landscape.surface import Quadratic
    >>> found = sensitivity(Quadratic(np.diag([4.0, 1.0])), np.zeros(2), radius=1.0)
    >>> found.mean.tolist(), found.gradient_mean.tolist(), found.loss.mean, found.loss.error
    ([2.0, 0.5], [4.0, 1.0], 1.25, 0.0)
    """
    at = checked(surface, at)
    if not 0 < radius < float("inf"):
        raise invalid_parameter("radius", "a positive number", radius)
    chosen = _chosen(surface.size, coordinates, seed)
    each = lengths(surface, at, "standardised" if units is None else units)
    loss, norm = surface.loss(at), float(np.linalg.norm(each * surface.gradient(at)))
    rises, norms = np.empty((2, len(chosen))), np.empty((2, len(chosen)))
    for k, coordinate in enumerate(chosen):
        for side, sign in enumerate((1, -1)):
            there = at.copy()
            there[coordinate] += sign * radius * each[coordinate]
            rises[side, k] = surface.loss(there) - loss
            norms[side, k] = np.linalg.norm(each * surface.gradient(there)) - norm
    return Sensitivity(radius, chosen, each[chosen], rises[0], rises[1], norms[0], norms[1], surface.size)


def summary(
    surface: Surface, at: Vector, radius: float = 0.1, samples: int = 32, coordinates: int = 32, steps: int = 5,
    seed: int = 0,
) -> dict[str, float]:  # fmt: skip
    """Measure the sharpness of a point in all three forms, as figures of a report.

    ``sharpness`` is the highest rise of the loss that ``steps`` steps of ascent find within ``radius``.
    ``ball_<p>_loss`` and ``ball_<p>_gradient_norm``, for p of 1, 2 and infinity, are mean changes in p-balls, and
    ``coordinates_loss`` and ``coordinates_gradient_norm`` mean changes along at most ``coordinates`` standardised
    coordinates. Each mean is followed by its standard error, under the same name with ``_error``. The p-balls have
    :func:`matching_radius`, so that they differ only where the loss is not a quadratic form.

    >>> from hogwild.landscape.surface import Quadratic
    >>> found = summary(Quadratic(np.diag([4.0, 1.0])), np.zeros(2), radius=1.0)
    >>> list(found)[:5], found["coordinates_loss"]
    (['sharpness', 'ball_1_loss', 'ball_1_loss_error', 'ball_1_gradient_norm', 'ball_1_gradient_norm_error'], 1.25)
    """
    found = {"sharpness": sharpness(surface, at, radius, steps, seed).rise}
    looks: dict[str, Neighbourhood | Sensitivity] = {
        f"ball_{p:g}": ball(surface, at, matching_radius(radius, surface.size, p), p, samples, seed)
        for p in (1, 2, math.inf)
    }
    looks["coordinates"] = sensitivity(surface, at, radius, min(coordinates, surface.size), seed=seed)
    for name, look in looks.items():
        for figure, changes in (("loss", look.loss), ("gradient_norm", look.gradient_norm)):
            found |= {f"{name}_{figure}": changes.mean, f"{name}_{figure}_error": changes.error}
    return found


def _chosen(size: int, coordinates: int | Sequence[int] | None, seed: int) -> NDArray[np.int64]:
    if coordinates is None:
        return np.arange(size)
    if isinstance(coordinates, int):
        if not 1 <= coordinates <= size:
            raise invalid_parameter("coordinates", f"some of 1 to {size:,}", coordinates)
        return np.sort(np.random.default_rng(seed).choice(size, coordinates, replace=False))
    given = np.array(coordinates, np.int64)
    if given.ndim != 1 or not ((given >= 0) & (given < size)).all():
        raise invalid_parameter("coordinates", f"numbers from 0 to {size - 1:,}", coordinates)
    return given
