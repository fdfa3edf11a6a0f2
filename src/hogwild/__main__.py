"""Command line: the command ``hogwild``, and ``python -m hogwild``."""

from __future__ import annotations

import contextlib
import sys

INTERRUPTED = 130  # exit code after Ctrl-C, as that of hogwild.cli.console, which is still being imported


def main() -> int:
    """Import the command line, run it and return its exit code; Ctrl-C during the import ends with one line, too."""
    try:
        from hogwild.cli import main as run
    except KeyboardInterrupt:
        with contextlib.suppress(OSError, AttributeError):  # There may be no stderr.
            sys.stderr.write("error: interrupted\n")
        return INTERRUPTED
    return run()


if __name__ == "__main__":
    sys.exit(main())
