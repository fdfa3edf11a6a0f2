"""The page as text: what is in it, what is escaped, what can be downloaded."""

import base64
import builtins
import csv
import io
import itertools
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from hogwild.errors import MissingExtraError
from hogwild.lab.report import render, write_report
from hogwild.lab.report.chart_styles import DARK, LIGHT
from hogwild.lab.report.figure_tables import csv_of, parquet_of, table_of
from hogwild.lab.report.plotly_charts import chart_plot, map_plot
from hogwild.lab.report_model import Chart, Map, Report, Section, Series, Table

VOID = {"meta", "link", "input", "br"}


class Page(HTMLParser):
    """A page as a list of elements (tag, attributes) and of scripts; complains about tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)
        elif self._open and self._open[-1] != "style":
            self.words.append(data)

    def all(self, tag, **wanted):
        return [a for t, a in self.elements if t == tag and all(a.get(key) == value for key, value in wanted.items())]


@pytest.fixture(scope="module")
def text(report):
    return render(report)


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


@pytest.fixture(scope="module")
def nasty(report):
    return report.sections[2]


def files(page):
    """Everything that can be downloaded: content by file name."""
    found = {}
    for link in page.all("a", **{"class": "download"}):
        kind, _, content = link["href"].partition(";base64,")
        assert kind.startswith("data:")
        assert link["download"] not in found
        found[link["download"]] = base64.b64decode(content)
    return found


def read_csv(content):
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


def test_landmarks_and_headings_in_order(page):
    for landmark in ("header", "nav", "main", "footer", "h1", "title"):
        assert len(page.all(landmark)) == 1
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(later <= earlier + 1 for earlier, later in itertools.pairwise(levels))
    assert page.all("a", href="#main", **{"class": "skip"})
    assert page.all("html", lang="en")


def test_ids_differ_and_references_lead_somewhere(page):
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.elements:
        if tag == "a" and attributes["href"].startswith("#"):
            assert attributes["href"][1:] in ids
        if "aria-labelledby" in attributes:
            assert attributes["aria-labelledby"] in ids


def test_every_section_is_listed_and_shown(page, report):
    assert len(page.all("section")) == len(report.sections)
    links = [a["href"] for a in page.all("a") if a["href"].startswith("#study-")]
    assert links == ["#" + section["id"] for section in page.all("section")]
    words = " ".join(page.words)
    for section in report.sections:
        assert section.title in words
        assert section.question in words
        assert all(finding.text in words for finding in section.findings)
    for value in (report.made, *report.machine.values()):
        assert value in words


def test_findings_are_marked_in_words(text, report):
    findings = [finding for section in report.sections for finding in section.findings]
    for holds, words in ((True, "Borne out"), (False, "Not borne out"), (None, "No claim")):
        assert text.count(f"</span> {words}</span>") == sum(finding.holds is holds for finding in findings)


def test_every_figure_has_words_numbers_and_boxes(page, report):
    charts = [part for section in report.sections for part in section.parts if not isinstance(part, Table)]
    plots = page.all("div", role="img")
    assert len(page.all("figure")) == len(plots) == len(charts) == len(page.all("details", **{"class": "numbers"}))
    for plot, chart in zip(plots, charts, strict=True):
        assert chart.title in plot["aria-label"]
        assert chart.words in plot["aria-label"]
    series = sum(len(chart.series) if isinstance(chart, Chart) else chart.path is not None for chart in charts)
    assert len(page.all("input", type="checkbox")) == series


def test_specs_are_plain_json_that_ends_nothing(page):
    [specs] = [script for attributes, script in page.scripts if attributes.get("id") == "specs"]
    assert "<" not in specs
    assert "NaN" not in specs
    assert "Infinity" not in specs
    drawn = json.loads(specs)
    assert {plot["data-spec"] for plot in page.all("div", role="img")} == set(drawn)


def test_plotly_is_embedded_once_and_nothing_is_asked_for(page, text):
    from plotly.offline import get_plotlyjs

    assert text.count(get_plotlyjs()[:200]) == 1
    assert len(page.scripts) == 3
    for _, attributes in page.elements:
        for name in ("src", "href", "srcset", "action", "poster", "data"):
            assert not re.match("(?i)(https?:)?//", attributes.get(name) or "")
    [policy] = [a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "http" not in policy
    assert "unsafe" not in policy.split("style-src")[0]
    assert "url(" not in text.partition("</style>")[0]


def test_odd_texts_stay_texts(page, text, nasty):
    assert "<script>alert" not in text
    assert "<b>" not in text.partition("<script")[0]
    assert not [attributes for _, attributes in page.elements if any(name.startswith("on") for name in attributes)]
    words = " ".join(page.words)
    assert words.count("</script><script>alert('no')</script>") > 10  # as text
    plot = chart_plot(nasty.parts[0])
    assert "<" not in json.dumps([plot.data, plot.layout]).replace("<br>", "")


def test_tables_are_written_for_people(text):
    assert '<td class="number">1.23e-5</td>' in text
    assert '<td class="number">6.173</td>' in text
    assert "<td>yes</td>" in text
    assert "nan" not in re.sub(r"(?s)<script.*?</script>|href=\"data:[^\"]*\"", "", text).lower()


def test_records_come_back_from_csv(page, report):
    records = report.sections[0].records
    header, *rows = read_csv(files(page)["staleness.csv"])
    assert header == list(records[0])
    assert len(rows) == len(records)
    assert [float(row[3]) for row in rows] == [record["loss"] for record in records]  # to the last digit


def test_records_come_back_from_parquet(page, report):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(io.BytesIO(files(page)["staleness.parquet"]))
    assert table.to_pylist() == [dict(record) for record in report.sections[0].records]
    ragged = parquet.read_table(io.BytesIO(files(page)["landscape.parquet"])).to_pylist()
    assert ragged[0] == {"run": "one", "loss": 0.5, "note": None, "extra": None}
    assert math.isnan(ragged[1]["loss"])
    assert ragged[1]["extra"] == math.inf


def test_odd_records_can_be_written(nasty):
    table = table_of(nasty.records)
    header, *rows = read_csv(csv_of(table))
    assert header == list(table.columns)
    assert rows[2][0] == nasty.records[2]["name"]
    parquet = pytest.importorskip("pyarrow.parquet")
    back = parquet.read_table(io.BytesIO(parquet_of(table))).to_pylist()
    assert [row["name"] for row in back] == [record["name"] for record in nasty.records]
    assert [row["mixed"] for row in back] == ["1", "two", None]
    assert back[0]["big"] == str(2**70)
    assert back[0]["list"] == '[1, "x"]'


def test_every_chart_has_its_own_csv(page, report):
    found = files(page)
    chart = report.sections[0].parts[0]
    header, *rows = read_csv(found["staleness-loss-over-epochs-by-mean-delay.csv"])
    assert header == ["series", chart.x, chart.y, "spread"]
    first = [row for row in rows if row[0] == chart.series[0].name]
    assert [float(row[2]) for row in first] == chart.series[0].y
    assert [float(row[3]) for row in first] == chart.series[0].spread
    header, *rows = read_csv(found["landscape-the-valley-and-the-way-through-it.csv"])
    assert len(rows) == 41 * 41
    assert len(read_csv(found["landscape-the-valley-and-the-way-through-it-path.csv"])) == 33
    parts = [part for section in report.sections for part in section.parts]
    assert len(found) == len(parts) + 1 + 2 * 3  # one path, and records of three sections


def test_without_pyarrow_a_word_says_so(report, monkeypatch):
    forbid(monkeypatch, "pyarrow")
    text = render(report)
    assert "Parquet was left out" in text
    assert not [name for name in files(Page(text)) if name.endswith(".parquet")]


@pytest.mark.parametrize("package", ["jinja2", "plotly"])
def test_a_missing_package_is_named(report, monkeypatch, package):
    forbid(monkeypatch, package)
    with pytest.raises(MissingExtraError, match=rf"'{package}'.*hogwild\[lab\]"):
        render(report)


def test_arrays_and_ranges_will_do():
    series = Series("a", range(3), np.array([1.0, np.nan, 3.0]), np.array([0.1, 0.1, np.nan]))
    plot = chart_plot(Chart("Arrays", "x", "y", (series,)))
    assert plot.data[1]["x"] == [0, 1, 2]
    assert plot.data[1]["y"] == [1.0, None, 3.0]
    drawn = map_plot(Map("Map", "x", "y", np.arange(2), np.arange(2), np.eye(2), "z"))
    assert drawn.data[0]["z"] == [[1.0, 0.0], [0.0, 1.0]]
    json.dumps([plot.data, drawn.data], allow_nan=False)


def test_a_band_stays_on_a_logarithmic_axis():
    series = Series("a", [1, 2], [1.0, 0.5], [0.2, 0.9])
    band = chart_plot(Chart("Band", "x", "y", (series,), log_y=True)).data[0]
    assert min(y for y in band["y"] if y is not None) > 0


def test_a_gap_in_a_curve_is_a_gap_in_its_band():
    series = Series("a", [1, 2, 3, 4], [1.0, None, 1.0, 1.0], [0.1] * 4)
    band = chart_plot(Chart("Band", "x", "y", (series,))).data[0]
    assert band["x"] == [1, 1, None, 3, 4, 4, 3, None]


def test_long_tables_are_cut_and_say_so():
    curve = Series("a", range(5000), [0.5] * 5000)
    wide = Map("Wide", "x", "y", range(100), range(90), [[1.0] * 100] * 90, "z")
    chart = Chart("Long", "x", "y", (curve,))
    text = render(Report("r", (Section("s", "S", "?", (), (chart, wide), ()),), "now", {}, {}))
    assert "The first 400 of 5,000 rows; all of them are in the CSV." in text
    assert "30 of 90 rows and 34 of 100 columns; all of them are in the CSV." in text
    assert len(read_csv(files(Page(text))["s-long.csv"])) == 5001


def test_curves_differ_without_colour():
    plot = chart_plot(Chart("c", "x", "y", tuple(Series(str(i), [1], [1]) for i in range(8))))
    assert len({trace["marker"]["symbol"] for trace in plot.data}) == 8


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_can_be_read_on_their_paper(theme):
    for text in ("ink", "muted", "accent", "holds", "fails"):
        for paper in ("paper", "surface"):
            assert contrast(theme[text], theme[paper]) >= 4.5, (text, paper)


def test_a_page_is_written_whole_or_not_at_all(report, tmp_path, monkeypatch):
    target = tmp_path / "new" / "report.html"
    write_report(report, target)
    before = target.read_bytes()
    assert before.decode().startswith("<!doctype html>")
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_report(report, target)
    assert target.read_bytes() == before
    assert [file.name for file in target.parent.iterdir()] == ["report.html"]


def contrast(one, other):
    def lightness(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((lightness(one), lightness(other)))
    return (high + 0.05) / (low + 0.05)


def forbid(monkeypatch, package):
    """Make a package one that is not installed."""
    usual = builtins.__import__

    def without(name, *arguments, **more):
        if name.partition(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        return usual(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
