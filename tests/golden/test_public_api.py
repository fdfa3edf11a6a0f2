"""The public interface changes only when it is meant to: then ``make golden-record`` writes it anew."""

import public_api


def test_names_parameters_and_members_are_those_that_were_written_down():
    assert public_api.text() == public_api.API.read_text()
