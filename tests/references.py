"""The mathematics once more, in plain NumPy and double precision, written from the formulas and not from the code."""

from __future__ import annotations

import os

import numpy as np

ALL = os.environ.get("HOGWILD_CONFORMANCE") == "all"  # also the combinations that take long: make conformance

# Losses: (values, derivatives) of arrays of scores


def _by_margin(value, slope):
    """A loss of the margin m = z y, whose derivative by z is y times that by m."""
    return lambda z, y, _: (value(z * y), y * slope(z * y))


def _by_residual(value, slope):
    return lambda z, y, parameter: (value(z - y, parameter), slope(z - y, parameter))


def _outside(r, width):
    """How far a residual is outside a tube, with its sign."""
    return np.sign(r) * np.maximum(np.abs(r) - width, 0)


def _sigmoid(m):
    return 0.5 * (1 + np.tanh(m / 2))


LOSSES = {
    "hinge": _by_margin(lambda m: np.maximum(0, 1 - m), lambda m: -1.0 * (m <= 1)),
    "squared-hinge": _by_margin(lambda m: np.maximum(0, 1 - m) ** 2, lambda m: -2 * np.maximum(0, 1 - m)),
    "logistic": _by_margin(lambda m: np.logaddexp(0, -m), lambda m: -_sigmoid(-m)),
    "softmax": _by_margin(lambda m: np.logaddexp(0, -m), lambda m: -_sigmoid(-m)),
    "modified-huber": _by_margin(
        lambda m: np.where(m < -1, -4 * m, np.maximum(0, 1 - m) ** 2),
        lambda m: np.where(m < -1, -4, -2 * np.maximum(0, 1 - m)),
    ),
    "perceptron": _by_margin(lambda m: np.maximum(0, -m), lambda m: -1.0 * (m <= 0)),
    "squared": _by_residual(lambda r, _: r**2 / 2, lambda r, _: r),
    "huber": _by_residual(
        lambda r, d: np.where(np.abs(r) <= d, r**2 / 2, d * np.abs(r) - d**2 / 2), lambda r, d: np.clip(r, -d, d)
    ),
    "epsilon-insensitive": _by_residual(lambda r, e: np.abs(_outside(r, e)), lambda r, e: np.sign(_outside(r, e))),
    "squared-epsilon-insensitive": _by_residual(lambda r, e: _outside(r, e) ** 2, lambda r, e: 2 * _outside(r, e)),
    "quantile": _by_residual(lambda r, q: np.maximum(-q * r, (1 - q) * r), lambda r, q: np.where(r < 0, -q, 1 - q)),
    "poisson": lambda z, y, _: (np.exp(z) - y * z, np.exp(z) - y),
}


def softmax(scores, label):
    """Cross-entropy of one row, and its derivative by each score."""
    shifted = scores - scores.max()
    p = np.exp(shifted) / np.exp(shifted).sum()
    return -np.log(p[label]), p - np.eye(len(scores))[label]


def one_vs_rest(loss, scores, label, parameter=0.0, class_weights=1.0):
    """The sum of a two-class loss over the classes, and its derivative by each score; a class weighs where it is 1."""
    ones = np.arange(len(scores)) == label
    values, slopes = LOSSES[loss](scores, np.where(ones, 1.0, -1.0), parameter)
    weights = np.where(ones, class_weights, 1.0)
    return (weights * values).sum(), weights * slopes


# Rules: each keeps what it needs for a vector of coordinates and steps some of them


def proximal(w, rate, l1, l2):
    """argmin over v of (v - w)^2 / (2 rate) + l1 |v| + l2 v^2 / 2"""
    return np.sign(w) * np.maximum(np.abs(w) - rate * l1, 0) / (1 + rate * l2)


class SGD:
    def __init__(self, size):
        self.w = np.zeros(size)

    def step(self, at, g, rate, l1=0.0, l2=0.0):
        self.w[at] = proximal(self.w[at] - rate * g, rate, l1, l2)


class Momentum(SGD):
    def __init__(self, size, beta=0.9):
        super().__init__(size)
        self.beta, self.velocity = beta, np.zeros(size)

    def step(self, at, g, rate, l1=0.0, l2=0.0):
        self.velocity[at] = self.beta * self.velocity[at] + g
        self.w[at] = proximal(self.w[at] - rate * self.velocity[at], rate / (1 - self.beta), l1, l2)


class AdaGrad(SGD):
    def __init__(self, size, initial_accumulator=1e-6):
        super().__init__(size)
        self.sum = np.full(size, initial_accumulator)

    def step(self, at, g, rate, l1=0.0, l2=0.0):
        self.sum[at] += g**2
        own = rate / np.sqrt(self.sum[at])
        self.w[at] = proximal(self.w[at] - own * g, own, l1, l2)


class Adam(SGD):
    def __init__(self, size, beta1=0.9, beta2=0.999, epsilon=1e-8):
        super().__init__(size)
        self.betas, self.epsilon = (beta1, beta2), epsilon
        self.m, self.v, self.t = np.zeros(size), np.zeros(size), np.zeros(size)

    def step(self, at, g, rate, l1=0.0, l2=0.0):
        beta1, beta2 = self.betas
        self.t[at] += 1
        self.m[at] += (1 - beta1) * (g - self.m[at])
        self.v[at] += (1 - beta2) * (g**2 - self.v[at])
        m, v = self.m[at] / (1 - beta1 ** self.t[at]), self.v[at] / (1 - beta2 ** self.t[at])
        own = rate / (np.sqrt(v) + self.epsilon)
        self.w[at] = proximal(self.w[at] - own * m, own, l1, l2)


class FTRL(SGD):
    """Keeps every gradient and every iterate, and solves for the leader from scratch at each step."""

    def __init__(self, size, beta=1.0):
        super().__init__(size)
        self.beta = beta
        self.past = [[] for _ in range(size)]  # per coordinate: (gradient, iterate, strength so far)

    def step(self, at, g, rate, l1=0.0, l2=0.0):
        shape = np.shape(at)
        for u, g_u, l1_u, l2_u in zip(*(np.broadcast_to(a, shape or (1,)) for a in (at, g, l1, l2)), strict=True):
            past = self.past[u]
            squares = sum(g**2 for g, _, _ in past) + g_u**2
            past.append((g_u, self.w[u], (self.beta + np.sqrt(squares)) / rate))
            gradients, iterates, strengths = (np.array(column) for column in zip(*past, strict=True))
            # The leader minimises sum g w + t (l1 |w| + l2 w^2 / 2) + sum sigma_s (w - w_s)^2 / 2.
            linear = gradients.sum() - np.diff(strengths, prepend=0) @ iterates
            t = len(past)
            self.w[u] = proximal(-linear / strengths[-1], t / strengths[-1], l1_u, l2_u)


RULES = {"sgd": SGD, "momentum": Momentum, "adagrad": AdaGrad, "ftrl": FTRL, "adam": Adam}


# Linear models


def transcribe(
    X, y, order, rates, rule, loss, *,
    l1=0.0, l2=0.0, intercept=True, weights=None, classes=1, parameter=0.0, softly=False,
    class_weights=1.0, everywhere=False,
):  # fmt: skip
    """Descend term by term; yield (loss of the term before its update, weights, intercepts) after each.

    ``X`` is a SciPy CSR matrix whose stored entries are what counts as present. With several classes ``y`` holds
    class numbers, and the weights are (features, classes). L2 is spread over the terms, or all of it is at work
    ``everywhere`` in each.
    """
    n, d = X.shape
    shares = n / np.maximum(np.bincount(X.indices, minlength=d), 1)
    outputs = 1 if classes == 2 else classes
    w, b = [RULES[rule](d) for _ in range(outputs)], [RULES[rule](1) for _ in range(outputs)]
    for i, rate in zip(order, rates, strict=True):
        entries = slice(X.indptr[i], X.indptr[i + 1])
        at, x = X.indices[entries].astype(np.int64), X.data[entries].astype(np.float64)
        scores = np.array([w_k.w[at] @ x + b_k.w[0] for w_k, b_k in zip(w, b, strict=True)])
        if outputs == 1:
            value, slopes = LOSSES[loss](scores, float(y[i]), parameter)
        elif softly:
            value, slopes = softmax(scores, int(y[i]))
        else:
            value, slopes = one_vs_rest(loss, scores, int(y[i]), parameter, class_weights)
        weight = 1.0 if weights is None else float(weights[i])
        for w_k, b_k, slope in zip(w, b, slopes, strict=True):
            w_k.step(at, weight * slope * x, rate, l1 * shares[at], 0.0 if everywhere else l2 * shares[at])
            if everywhere:
                w_k.w = proximal(w_k.w, rate, 0.0, l2)
            if intercept:
                b_k.step(np.array([0]), weight * slope, rate)
        yield weight * float(np.sum(value)), np.stack([w_k.w for w_k in w], axis=1), np.array([b_k.w[0] for b_k in b])


def objective(X, y, w, b, loss, *, l1=0.0, l2=0.0, weights=None, parameter=0.0):
    """What :class:`hogwild.Linear` says it minimises, for a model with one output."""
    values, _ = LOSSES[loss](X @ w + b, y, parameter)
    mean = np.mean(values if weights is None else weights * values)
    return mean + l1 * np.abs(w).sum() + l2 / 2 * w @ w


def smooth_optimum(X, y, loss, *, l2=0.0, intercept=True, weights=None, parameter=0.0):
    """The least objective of a differentiable loss, by L-BFGS: (objective, weights, intercept)."""
    from scipy.optimize import minimize

    n, d = X.shape
    s = np.ones(n) if weights is None else weights

    def both(theta):
        w, b = theta[:d], theta[d] if intercept else 0.0
        values, slopes = LOSSES[loss](X @ w + b, y, parameter)
        by_b = [np.mean(s * slopes)] if intercept else []
        return np.mean(s * values) + l2 / 2 * w @ w, np.concatenate([X.T @ (s * slopes) / n + l2 * w, by_b])

    options = {"maxiter": 5_000, "maxfun": 20_000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 30}
    found = minimize(both, np.zeros(d + intercept), jac=True, method="L-BFGS-B", options=options)
    return float(found.fun), found.x[:d], float(found.x[d]) if intercept else 0.0


def piecewise_optimum(X, y, pieces, *, l2=0.0):
    """The least objective of a loss that is a maximum of lines in z, by smoothing it less and less.

    ``pieces(y)`` gives the lines of each row as (slopes, offsets), arrays of shape (n, lines). A soft
    maximum of them is smooth, and exact within ``log(lines) / sharpness``.
    """
    from scipy.optimize import minimize
    from scipy.special import logsumexp
    from scipy.special import softmax as soft

    n, d = X.shape
    slopes, offsets = pieces(y)
    theta = np.zeros(d + 1)
    for sharpness in (10.0, 100.0, 1_000.0, 5_000.0):

        def both(theta, sharpness=sharpness):
            z = X @ theta[:d] + theta[d]
            lines = slopes * z[:, None] + offsets
            value = logsumexp(sharpness * lines, axis=1) / sharpness
            by_z = (soft(sharpness * lines, axis=1) * slopes).sum(axis=1)
            gradient = np.concatenate([X.T @ by_z / n + l2 * theta[:d], [by_z.mean()]])
            return value.mean() + l2 / 2 * theta[:d] @ theta[:d], gradient

        options = {"maxiter": 500, "maxfun": 1_000, "ftol": 1e-9, "gtol": 1e-7, "maxcor": 30}
        theta = minimize(both, theta, jac=True, method="L-BFGS-B", options=options).x
    z = X @ theta[:d] + theta[d]
    return float((slopes * z[:, None] + offsets).max(axis=1).mean() + l2 / 2 * theta[:d] @ theta[:d])
