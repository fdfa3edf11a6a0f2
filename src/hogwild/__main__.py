"""Command line: ``python -m hogwild``."""

from __future__ import annotations

import sys

from hogwild.cli import main

if __name__ == "__main__":
    sys.exit(main())
