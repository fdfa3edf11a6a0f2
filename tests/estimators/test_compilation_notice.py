"""The first fit of its kind compiles, and says so to an interactive user alone."""

import sys

import numpy as np
import pytest

from hogwild import HogwildClassifier
from hogwild.estimators import compilation_notice


@pytest.mark.parametrize("interactive", [True, False])
@pytest.mark.parametrize("compiled", [True, False])
def test_an_interactive_user_is_told(monkeypatch, capsys, interactive, compiled):
    monkeypatch.setattr(compilation_notice, "is_cached", lambda kernel: compiled)
    if interactive:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    HogwildClassifier(max_iter=2, tol=None).fit(np.eye(4), [0, 1, 0, 1])
    assert (compilation_notice.MESSAGE in capsys.readouterr().err) == (interactive and not compiled)
