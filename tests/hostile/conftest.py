"""What tests of hostile input share."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import psutil
import pytest

MUTANT_BYTES = 4 * 2**30  # Memory that no mutated file may take.


@pytest.fixture
def bounded_memory() -> Iterator[None]:
    """Bound the memory of this process: a file that takes more is an error of a test, and harms nothing else."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + MUTANT_BYTES, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)
