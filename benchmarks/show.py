"""The last tables, shown in the docs: what stands between two marks on a page is replaced by a result."""

from __future__ import annotations

import os
import re
from pathlib import Path

from benchmarks import results

DOCS = Path(__file__).parents[1] / "docs"
MARKED = re.compile(r"(<!-- result: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def shown(page: str, folder: Path, pictures: str) -> str:
    """A page with its results filled in: of each its date, machine and tables, up to the first heading of details.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "speed.md").write_text("# Speed\\n\\nToday.\\n\\n![](a.svg)\\n\\n## Details\\n\\nMany.\\n")
    ...     print(shown("<!-- result: speed -->\\nold\\n<!-- end -->", Path(folder), "../there"))
    <!-- result: speed -->
    Today.
    <BLANKLINE>
    ![](../there/a.svg)
    <!-- end -->
    """

    def fill(mark: re.Match[str]) -> str:
        path = folder / f"{mark[2]}.md"
        if not path.exists():
            return mark[0]
        body = path.read_text().split("\n", 1)[1].split("\n## ", 1)[0].strip()
        return f"{mark[1]}{body.replace('![](', f'![]({pictures}/')}\n{mark[3]}"

    return MARKED.sub(fill, page)


def main() -> None:
    """Fill in the pages of the docs that show results."""
    for page in DOCS.rglob("*.md"):
        before = page.read_text()
        after = shown(before, results.FOLDER, os.path.relpath(results.FOLDER, page.parent))
        if after != before:
            page.write_text(after)


if __name__ == "__main__":
    main()
