"""Factorisation machines once more, in plain NumPy and double precision, written from the formulas.

Every pair of features is looked at by itself, as in the definition; nothing is summed up cleverly.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

import references


def entries(X, i, normalise=False):
    """Columns and values of a row of a SciPy CSR matrix."""
    at = slice(X.indptr[i], X.indptr[i + 1])
    columns, x = X.indices[at].astype(int), X.data[at].astype(float)
    return columns, x / np.sqrt(x @ x) if normalise and x.any() else x


def row_number(u, t, fields):
    """Which row of factors feature u has for feature t: its only one, or that for the field of t."""
    return u if fields is None else u * (max(fields) + 1) + fields[t]


def score(columns, x, w, b, factors, fields=None):
    """b + sum w x + sum over pairs <v, v'> x x'; ``factors`` has a line for each row of them."""
    z = b + w[columns] @ x
    for i, j in combinations(range(len(columns)), 2):
        one = factors[row_number(columns[i], columns[j], fields)]
        other = factors[row_number(columns[j], columns[i], fields)]
        z += one @ other * x[i] * x[j]
    return z


def scores(X, w, b, factors, fields=None, normalise=False):
    return np.array([score(*entries(X, i, normalise), w, b, factors, fields) for i in range(X.shape[0])])


def visits(X, fields=None):
    """How often each row of factors is met in the terms."""
    counts = np.zeros(X.shape[1] * (1 if fields is None else max(fields) + 1))
    for i in range(X.shape[0]):
        columns, _ = entries(X, i)
        for u in columns:
            if fields is None:
                counts[u] += 1
            for t in columns:
                if fields is not None and u != t:
                    counts[row_number(u, t, fields)] += 1
    return counts


def objective(X, y, w, b, factors, loss, *, l2=0.0, l2_factors=0.0, fields=None, normalise=False):
    """The mean loss and the penalties."""
    z = scores(X, w, b, factors, fields, normalise)
    penalty = l2 / 2 * w @ w + l2_factors / 2 * visits(X, fields) / X.shape[0] @ (factors**2).sum(axis=1)
    return references.LOSSES[loss](z, y, 0.0)[0].mean() + penalty


def transcribe(
    X, y, order, rates, rule, loss, start, *, l2=0.0, l2_factors=0.0, fields=None, normalise=False, intercept=True
):
    """Descend term by term from factors ``start``; return weights, intercept and factors."""
    n, d = X.shape
    shares = n / np.maximum(np.bincount(X.indices, minlength=d), 1)
    make = references.RULES[rule]
    w, b, v = make(d), make(1), make(start.size)
    v.w, rank = start.astype(float).ravel().copy(), start.shape[1]

    def row(number):
        return np.arange(number * rank, (number + 1) * rank)

    for i, rate in zip(order, rates, strict=True):
        columns, x = entries(X, i, normalise)
        z = score(columns, x, w.w, b.w[0], v.w.reshape(-1, rank), fields)
        g = float(references.LOSSES[loss](z, float(y[i]), 0.0)[1])
        w.step(columns, g * x, rate, l2=l2 * shares[columns])
        if fields is None:
            total = sum(v.w[row(u)] * x_u for u, x_u in zip(columns, x, strict=True))
            for u, x_u in zip(columns, x, strict=True):
                slope = g * x_u * (total - v.w[row(u)] * x_u)
                v.step(row(u), slope, rate, l2=l2_factors)
        else:
            for j, t in combinations(range(len(columns)), 2):
                one = row(row_number(columns[j], columns[t], fields))
                other = row(row_number(columns[t], columns[j], fields))
                pull, first, second = g * x[j] * x[t], v.w[one].copy(), v.w[other].copy()
                v.step(one, pull * second, rate, l2=l2_factors)
                v.step(other, pull * first, rate, l2=l2_factors)
        if intercept:
            b.step(np.array([0]), np.array([g]), rate)
    return w.w, b.w[0], v.w.reshape(-1, rank)
