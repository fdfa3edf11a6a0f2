"""An error that this package does not expect is a bug: the message says what to send, and where."""

from __future__ import annotations

import importlib.metadata
from email.message import Message

import pytest

from hogwild.cli.console import explain


def test_a_bug_names_what_to_send() -> None:
    message = explain(ZeroDivisionError("division by zero."))
    assert message.startswith("ZeroDivisionError: division by zero. This should not happen: it is a bug of hogwild.")
    for part in ("Please report it at", "the command", "--debug", "hogwild doctor --json", "smallest input"):
        assert part in message


def test_a_bug_names_the_place_that_the_package_names(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Message()
    found["Project-URL"] = "Issues, https://example.org/hogwild/issues"
    monkeypatch.setattr(importlib.metadata, "metadata", lambda name: found)
    assert "Please report it at https://example.org/hogwild/issues, with" in explain(ZeroDivisionError())


def test_a_bug_does_not_print_megabytes() -> None:
    assert len(explain(ZeroDivisionError("x" * 10**6))) < 3000


def test_too_little_memory_is_not_blamed_on_the_data() -> None:
    assert explain(MemoryError("Unable to allocate 7 TiB")).startswith(
        "There is not enough memory (Unable to allocate 7 TiB). Use fewer features"
    )
