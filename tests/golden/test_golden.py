"""Results that must not change while code is moved: see record.py for changes that are meant to change them."""

import json

import pytest
from comparing import GOLDEN, differences, machine, summary
from recipes import RECIPES

KNOWN = json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("name", RECIPES)
def test_results_are_what_they_were(name):
    found = {key: summary(array) for key, array in sorted(RECIPES[name]().items())}
    assert not differences(name, KNOWN["results"][name], found, exact=machine() == KNOWN["machine"])


def test_nothing_is_left_out():
    assert KNOWN["results"].keys() == RECIPES.keys()
