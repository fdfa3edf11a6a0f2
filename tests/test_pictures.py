"""The pictures of the documentation are those that the tool draws, and name what there is."""

from __future__ import annotations

import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent
TOOL = runpy.run_path(str(ROOT / "tools" / "pictures"))


@pytest.mark.parametrize("name", TOOL["PICTURES"])
def test_a_picture_is_the_one_that_is_drawn(name):
    drawn = TOOL["PICTURES"][name]()
    if name != "figures.svg":  # drawn by make docs from the last figures, as tables are put into pages
        assert (TOOL["FOLDER"] / name).read_text() == drawn, "run tools/pictures"
    root = ElementTree.fromstring(drawn)
    width, height = (float(root.get(side)) for side in ("width", "height"))
    assert "prefers-color-scheme: dark" in drawn
    for each in root.iter("{http://www.w3.org/2000/svg}rect"):
        assert float(each.get("x")) + float(each.get("width")) <= width
        assert float(each.get("y")) + float(each.get("height")) <= height
    pages = [page.read_text() for page in (ROOT / "docs").rglob("*.md")]
    assert any(f"pictures/{name}" in page for page in pages)


def test_the_picture_names_the_drivers_and_runtimes_that_there_are():
    from hogwild.runtimes import RUNTIMES
    from hogwild.training.job import DRIVERS

    assert {f"hogwild.training.{name}" for name, _, _ in TOOL["DRIVERS"]} == set(DRIVERS.values())
    assert {kind.__name__ for kind in RUNTIMES.values()} == set(TOOL["RUNTIMES"])


def test_every_text_fits_its_box():
    """A letter of the widest font in the list is about 0.62 times as wide as it is high."""
    for draw in TOOL["PICTURES"].values():
        room = 0.0
        for each in ElementTree.fromstring(draw()):
            if each.tag.endswith("rect"):
                room = float(each.get("width"))
            elif each.get("text-anchor") == "middle":
                assert 0.62 * (13 if each.get("class") == "name" else 12) * len(each.text) <= room, each.text
