"""Build hook: the manual page goes into the wheel, if ``make dist`` has made it or the sdist has it."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = "build/man/hogwild.1"


class ManualPage(BuildHookInterface):  # type: ignore[misc]  # hatchling is there only when something is built
    """Hook that adds the manual page where ``man`` looks for it in an environment."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the page to the shared data of the wheel."""
        if version == "standard" and Path(self.root, PAGE).is_file():
            build_data["shared_data"][PAGE] = "share/man/man1/hogwild.1"
