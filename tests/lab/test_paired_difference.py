"""Differences between settings: their intervals, and what could have been seen."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_rel

from hogwild.lab.experiment import Results
from hogwild.lab.paired_difference import Difference, paired


def test_the_interval_is_that_of_a_paired_t_test():
    rng = np.random.default_rng(0)
    one, other = rng.normal(1, 1, 9), rng.normal(0, 1, 9)
    found = Difference.of(one.tolist(), other.tolist())
    interval = ttest_rel(one, other).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-3)
    assert found.count == 9


def test_a_difference_that_is_detectable_is_seen_in_about_four_of_five_experiments():
    rng, seeds = np.random.default_rng(1), 8
    size = Difference.of([1.0, -1.0] * (seeds // 2), [0.0] * seeds).detectable / math.sqrt(seeds / (seeds - 1))
    seen = [Difference.of(rng.normal(size, 1, seeds).tolist(), [0.0] * seeds).seen for _ in range(1000)]
    assert 0.7 < np.mean(seen) < 0.9


def test_several_comparisons_together_have_wider_intervals():
    values = [0.9, 1.2, 1.4, 0.8]
    alone, together = (Difference.of(values, [0.0] * 4, comparisons) for comparisons in (1, 6))
    assert together.low < alone.low < alone.high < together.high
    assert together.detectable > alone.detectable


def test_what_is_missing_is_left_out():
    found = Difference.of([1.0, None, math.nan, 2.0], [0.0, 5.0, 5.0, 1.0])
    assert (found.value, found.count) == (1.0, 2)
    single = Difference.of([1.0], [0.0])
    assert not single.seen
    assert single.detectable == math.inf


def test_pairs_are_of_the_same_seed():
    records = [{"method": "a", "seed": seed, "loss": seed + 1.0} for seed in (0, 1, 2)]
    records += [{"method": "b", "seed": seed, "loss": float(seed)} for seed in (2, 1, 5)]
    found = paired(Results(tuple(records)), "loss", {"method": "a"}, {"method": "b"})
    assert (found.value, found.low, found.high, found.count) == (1.0, 1.0, 1.0, 2)
