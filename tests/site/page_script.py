"""A page of the documentation as a script: its Python blocks and commands, one after the other.

``<!-- file: NAME -->`` before a block makes it a file of that name, ``<!-- not run: REASON -->`` leaves it out. Of a
block ``console``, lines that begin with ``$`` are commands, the others are what a command may print.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>file|not run): (?P<what>[^\n]+?) -->\n\n?)?```(?P<language>\w+)\n(?P<code>.*?)^```$",
    re.M | re.S,
)
HEAD = "import pathlib, subprocess\n"


def script(page: str) -> str:
    r"""Return the script of a page.

    >>> page = '''```python
    ... x = 1
    ... ```
    ...
    ... <!-- not run: it takes a cluster -->
    ... ```console
    ... $ kubectl apply
    ... ```
    ...
    ... ```console
    ... $ echo a \\
    ...     b
    ... a b
    ... ```
    ... '''
    >>> print(script(page))
    import pathlib, subprocess
    x = 1
    subprocess.run('echo a \\\n    b', shell=True, check=True)
    """
    return HEAD + "\n".join(line for found in BLOCK.finditer(page) for line in _lines(found))


def _lines(block: re.Match[str]) -> Iterator[str]:
    code = block["code"].rstrip()
    if block["mark"] == "file":
        yield f"pathlib.Path({block['what']!r}).write_text({block['code']!r})"
    elif block["mark"] is None and block["language"] == "python":
        yield code
    elif block["mark"] is None and block["language"] == "console":
        for command in re.findall(r"^\$ ((?:.*\\\n)*.*)$", code, re.M):
            yield f"subprocess.run({command!r}, shell=True, check=True)"


def runs(page: Path) -> bool:
    """Return whether a page has anything to run."""
    return script(page.read_text()) != HEAD
