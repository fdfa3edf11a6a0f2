"""The API reference leaves out members that a class inherits from another package, such as scikit-learn or PyTorch."""

from __future__ import annotations

import inspect
from functools import cached_property
from typing import Any

from sphinx.application import Sphinx


def skip_foreign(_app: Sphinx, _what: str, _name: str, found: Any, skip: bool, _options: Any) -> bool | None:
    """Return True for a member that another package defines, None to leave the decision to others."""
    function = (
        found.fget if isinstance(found, property) else found.func if isinstance(found, cached_property) else found
    )
    home = getattr(inspect.unwrap(function), "__module__", None) or ""
    foreign = (inspect.isroutine(found) or isinstance(found, property)) and not home.startswith("hogwild")
    return True if foreign or skip else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Ask before a member is documented."""
    app.connect("autodoc-skip-member", skip_foreign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
