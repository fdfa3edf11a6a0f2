"""One worker and the same settings on sparse data: the path that scikit-learn takes, to the last bit."""

import pytest
from agreeing import agree_on, cases


@pytest.mark.parametrize(("name", "settings", "loss", "penalty", "rate"), list(cases("reuters", "a9a")))
def test_every_loss_penalty_and_rate_of_sparse_rows(name, settings, loss, penalty, rate):
    agree_on(name, settings, loss=loss, penalty=penalty, learning_rate=rate)
