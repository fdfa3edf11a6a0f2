"""Pictures for papers."""

import builtins
import xml.etree.ElementTree as ElementTree

import pytest

from hogwild.errors import MissingExtraError
from hogwild.lab.report import save_figures
from hogwild.lab.report_model import Chart, Report, Section, Series, Table


@pytest.fixture(scope="module")
def saved(report, tmp_path_factory):
    return save_figures(report, tmp_path_factory.mktemp("figures") / "new")


def test_every_chart_and_map_is_saved_twice(report, saved):
    parts = [part for section in report.sections for part in section.parts if not isinstance(part, Table)]
    assert len(saved) == 2 * len(parts) == len({file.name for file in saved})
    assert saved[0].name == "staleness-loss-over-epochs-by-mean-delay.png"
    assert sorted(saved[0].parent.iterdir()) == sorted(saved)


def test_they_are_real_pictures(saved):
    from PIL import Image

    for file in saved:
        if file.suffix == ".png":
            with Image.open(file) as picture:
                assert picture.format == "PNG"
                assert picture.width == 1280
                assert 800 <= picture.height <= 1600
                assert len(picture.convert("RGB").getcolors(2**20)) > 20  # not blank
        else:
            assert ElementTree.parse(file).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_the_same_report_gives_the_same_files(report, saved, tmp_path):
    for file, again in zip(saved, save_figures(report, tmp_path), strict=True):
        assert file.read_bytes() == again.read_bytes(), file.name


def test_nothing_stays_changed(report, tmp_path):
    import matplotlib

    before, backend = dict(matplotlib.rcParams), matplotlib.get_backend(auto_select=False)
    save_figures(Report("r", report.sections[:1], "now", {}, {}), tmp_path)
    assert dict(matplotlib.rcParams) == before
    assert matplotlib.get_backend(auto_select=False) == backend


def test_same_titles_get_different_files(tmp_path):
    chart = Chart("Loss", "x", "y", (Series("a", [1, 2], [1.0, 2.0]),))
    section = Section("s", "S", "?", (), (chart, chart), ())
    names = [file.name for file in save_figures(Report("r", (section,), "now", {}, {}), tmp_path)]
    assert names == ["s-loss.png", "s-loss.svg", "s-loss-2.png", "s-loss-2.svg"]


def test_without_matplotlib_the_extra_is_named(report, tmp_path, monkeypatch):
    usual = builtins.__import__

    def without(name, *arguments, **more):
        if name == "matplotlib":
            raise ModuleNotFoundError(name)
        return usual(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"'matplotlib'.*hogwild\[lab\]"):
        save_figures(report, tmp_path)
