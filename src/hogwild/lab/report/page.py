"""Report as one HTML page that contains everything it needs and loads nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

from hogwild.errors import MissingExtraError
from hogwild.files import write_file
from hogwild.lab.report.chart_styles import style_sheet
from hogwild.lab.report.view_model import chapters, figures_of, tally
from hogwild.lab.report_model import Report

_HERE = Path(__file__).parent


def write_report(report: Report, path: str | Path) -> None:
    """Write the page to a file atomically: an error leaves an existing file as it was.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(Report("Nothing yet", (), "today", {}, {}), Path(folder, "report.html"))
    ...     Path(folder, "report.html").read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    text = render(report)
    Path(path).absolute().parent.mkdir(parents=True, exist_ok=True)
    write_file(path, text.encode("utf-8", "replace"))


def render(report: Report) -> str:
    """Return the page as text.

    >>> "<h1>Nothing yet</h1>" in render(Report("Nothing yet", (), "today", {}, {}))
    True
    """
    try:
        import jinja2
        from markupsafe import Markup
        from plotly.offline import get_plotlyjs
    except ImportError as missing:
        package = (missing.name or "jinja2").partition(".")[0]
        raise MissingExtraError("The page of a report", package, "lab") from None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown = chapters(report)
    scripts = [_within_a_page(get_plotlyjs()), _within_a_page(_text("page.js"))]
    return environment.get_template("page.html").render(
        report=report,
        chapters=shown,
        specs={figure.id: figure.plot for figure in figures_of(shown)},
        tally=tally,
        all_findings=tuple(finding for chapter in shown for finding in chapter.findings),
        styles=Markup(style_sheet() + "\n" + _text("page.css")),
        scripts=[Markup(script) for script in scripts],
        allowed=" ".join(f"'sha256-{_digest(script)}'" for script in scripts),
    )


def _within_a_page(script: str) -> str:
    """Return a script that can be embedded in a page: no end tag inside, and the line ends that browsers use.

    >>> _within_a_page("a = '</script>'")
    "a = '<\\\\/script>'"
    """
    return re.sub(r"</(?=script)", r"<\\/", script.replace("\r\n", "\n"), flags=re.IGNORECASE)


def _digest(script: str) -> str:
    """Return the digest by which the content security policy of the page allows a script; no other script runs."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
