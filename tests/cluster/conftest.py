"""What tests on clusters share."""

import pytest
from programs import Program


@pytest.fixture
def program(tmp_path):
    made = []

    def start(*options):
        made.append(Program(tmp_path, *options))
        return made[-1]

    yield start
    for each in made:
        for process in each.started():
            process.kill()
        each.process.stderr.close()
