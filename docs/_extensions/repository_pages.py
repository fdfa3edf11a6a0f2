"""Files of the repository beside ``docs/`` as pages of the site, and links to them.

On a code forge a link such as ``../../CONTRIBUTING.md`` shows the file. In the site it has to lead to a page. Before
the site is read, each file of PAGES and each table of ``benchmarks/results`` is copied to a page with adapted links.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "deploy/README.md": "project/deploy.md",
}
LINK = re.compile(r"(?<!`)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def pages() -> dict[Path, Path]:
    """Return the page of each file that has one."""
    found = {ROOT / name: DOCS / page for name, page in PAGES.items()}
    tables = sorted((ROOT / "benchmarks" / "results").glob("*.md"))
    found |= {table: DOCS / "benchmarks" / "tables" / table.name for table in tables}
    return found | {each: DOCS / "gallery" / f"{each.stem}.rst" for each in (ROOT / "examples").glob("*.py")}


def adapted(text: str, old: Path, new: Path) -> str:
    """Return the text of ``old`` with links that hold at ``new``: files become pages, folders lose their link.

    >>> adapted("[how](../CONTRIBUTING.md#taste)", DOCS / "index.md", DOCS / "index.md")
    '[how](project/contributing.md#taste)'
    """
    known = pages()

    def link(found: re.Match[str]) -> str:
        target = Path(os.path.normpath(old.parent / found[2]))
        if target.is_dir() and not target.is_relative_to(DOCS):
            return found[1]
        if not target.exists() and target not in known.values():
            return found[0]
        return f"[{found[1]}]({os.path.relpath(known.get(target, target), new.parent)}{found[3] or ''})"

    return LINK.sub(link, text)


def write_pages(_app: Sphinx) -> None:
    """Write the pages of files in Markdown; a page that has not changed is left alone."""
    for source, page in pages().items():
        if source.suffix != ".md":
            continue
        text = adapted(source.read_text(), source, page)
        page.parent.mkdir(parents=True, exist_ok=True)
        if not page.exists() or page.read_text() != text:
            page.write_text(text)


def adapt(app: Sphinx, name: str, source: list[str]) -> None:
    """Adapt the links of a page that is read."""
    path = Path(app.env.doc2path(name))
    if path.suffix == ".md":
        source[0] = adapted(source[0], path, path)


def setup(app: Sphinx) -> dict[str, bool]:
    """Write pages before documents are looked for, and adapt links when they are read."""
    handlers: tuple[tuple[str, Callable[..., None]], ...] = (("builder-inited", write_pages), ("source-read", adapt))
    for event, handler in handlers:
        app.connect(event, handler)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
