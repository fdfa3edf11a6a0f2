"""The page as a reader meets it: opened in a real browser, by keyboard, on a phone, in the dark, on paper."""

import csv
import io
import re
import shutil
from pathlib import Path

import pytest

from contrast import FAINT
from hogwild.lab.report import write_report
from hogwild.lab.report_model import Table

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")

READY = "document.documentElement.dataset.drawn === 'all'"


def until(page, expression, arg=None):
    """Wait for something to be true; Playwright's own way makes code of text, which the page's policy forbids."""
    for _ in range(600):
        if page.evaluate(expression, arg):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never true: {expression}")


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def address(report, tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "report.html"
    write_report(report, file)
    return file.as_uri()


@pytest.fixture(scope="module")
def heard():
    """What any page complained about, and what it asked for."""
    return {"complaints": [], "asked": set()}


@pytest.fixture(scope="module")
def visit(browser, address, heard):
    contexts = []

    def open_page(**settings):
        usual = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"}
        contexts.append(browser.new_context(**usual | settings))
        page = contexts[-1].new_page()
        page.on(
            "console", lambda said: heard["complaints"].append(said.text) if said.type in ("error", "warning") else 0
        )
        page.on("pageerror", lambda error: heard["complaints"].append(str(error)))
        page.on("request", lambda request: heard["asked"].add(request.url))
        page.goto(address)
        until(page, READY)
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(autouse=True)
def peace(heard, address):
    """Nothing is complained about, and nothing but the page itself is asked for."""
    yield
    assert heard["complaints"] == []
    assert {url for url in heard["asked"] if not url.startswith(("data:", "blob:"))} <= {address}


@pytest.fixture(scope="module")
def desk(visit):
    return visit()


@pytest.fixture
def page(desk):
    """One page for all tests, which each finds as if it were new."""
    yield desk
    desk.emulate_media(media="screen", color_scheme="light", reduced_motion="no-preference")
    desk.set_viewport_size({"width": 1280, "height": 900})
    desk.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = false; })")
    until(desk, "document.querySelector('.plot').layout.paper_bgcolor === '#ffffff'")
    desk.evaluate("delete document.documentElement.dataset.theme")


@pytest.fixture
def figures(report):
    return [part for section in report.sections for part in section.parts if not isinstance(part, Table)]


def test_every_plot_is_drawn(page, figures):
    assert page.locator(".js-plotly-plot").count() == len(figures)
    assert page.locator(".failed").count() == 0
    for plot in page.locator(".plot").all():
        box = plot.locator(".main-svg").first.bounding_box()
        assert box["width"] > 400
        assert box["height"] > 200
    first = page.locator(".plot").first
    assert first.locator(".scatterlayer .trace").count() == 4 + 5  # bands and curves
    assert page.locator(".plot .contour").count() > 0
    assert page.locator(".plot .hm image").count() > 0


def test_odd_texts_stay_texts_in_plots(page):
    shown = page.locator(".plot .g-xtitle").all_text_contents()
    assert any("</script><script>alert('no')</script>" in text for text in shown)
    assert page.locator(".plot a").count() == page.locator(".plot .modebar a").count()
    assert page.locator(".modebar a[href]").count() == 0


def test_the_keyboard_reaches_everything(visit):
    page = visit()
    seen = []
    for _ in range(400):
        page.keyboard.press("Tab")
        what = page.evaluate(
            """() => {
              const at = document.activeElement;
              if (at === document.body) return null;
              const style = getComputedStyle(at);
              const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
              return [at.matches(".skip") ? "skip" : at.id || at.className || at.type || at.tagName, outlined];
            }"""
        )
        if what is None:
            break
        seen.append(tuple(what))
    names = [name for name, _ in seen]
    assert names[:2] == ["skip", "theme"]
    assert names.count("checkbox") == page.locator("input[type=checkbox]").count()
    assert names.count("download") == page.locator("a.download").count()
    assert sum("modebar-btn" in name for name in names) == page.locator(".modebar-btn").count() > 0
    assert names.count("SUMMARY") == page.locator("summary").count()
    assert [name for name, outlined in seen if not outlined] == []


def test_a_drawing_is_an_image_beside_a_toolbar(page, figures):
    images = page.locator(".plot[role=group] svg.main-svg[role=img]").all()
    assert len(images) == len(figures)
    for image, figure in zip(images, figures, strict=True):
        assert image.get_attribute("aria-label").startswith(figure.title)
    assert page.locator("[role=img] button, [role=img] a").count() == 0


def test_the_skip_link_leads_to_the_studies(page):
    assert page.locator(".skip").bounding_box()["y"] < 0
    page.locator(".skip").focus()
    until(page, "document.querySelector('.skip').getBoundingClientRect().top >= 0")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_space_hides_and_shows_a_curve(page):
    box = page.locator("figure").first.locator("input[type=checkbox]").first
    plot = page.locator(".plot").first
    before = plot.locator(".scatterlayer .trace").count()
    box.focus()
    page.keyboard.press("Space")
    until(page, "document.querySelector('.plot').data[0].visible === false")
    assert plot.locator(".scatterlayer .trace").count() == before - 2  # the curve and its band
    for paper in ("#12161b", "#ffffff"):  # what is hidden stays hidden in other colours
        page.locator("#theme").click()
        until(page, "(paper) => document.querySelector('.plot').layout.paper_bgcolor === paper", paper)
        assert plot.locator(".scatterlayer .trace").count() == before - 2
    box.focus()
    page.keyboard.press("Space")
    until(page, "document.querySelector('.plot').data[0].visible === true")
    assert plot.locator(".scatterlayer .trace").count() == before


def test_enter_opens_the_numbers(page):
    details = page.locator("details.numbers").first
    assert not details.locator("table").is_visible()
    details.locator("summary").focus()
    page.keyboard.press("Enter")
    assert details.locator("table").is_visible()
    assert details.locator("tbody tr").count() == 60
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "scroll"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read_in_both_schemes(page, scheme):
    page.emulate_media(color_scheme=scheme)
    page.wait_for_timeout(500)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    count, faint = page.evaluate(FAINT)
    assert count > 300
    assert faint == []


def colours(page):
    return page.evaluate(
        """() => [
          getComputedStyle(document.body).backgroundColor,
          document.querySelector(".plot").layout.paper_bgcolor,
          getComputedStyle(document.querySelector(".plot .xtick text")).fill,
        ]"""
    )


def test_plots_follow_the_scheme_and_the_button(page):
    light = colours(page)
    button = page.locator("#theme")
    assert button.get_attribute("aria-pressed") == "false"
    page.emulate_media(color_scheme="dark")
    until(page, "(was) => document.querySelector('.plot').layout.paper_bgcolor !== was", arg=light[1])
    dark = colours(page)
    assert all(one != other for one, other in zip(light, dark, strict=True))
    assert button.get_attribute("aria-pressed") == "true"
    button.focus()
    page.keyboard.press("Enter")
    until(page, "(was) => document.querySelector('.plot').layout.paper_bgcolor === was", arg=light[1])
    assert button.get_attribute("aria-pressed") == "false"
    assert colours(page) == light


def test_a_phone_shows_it_without_scrolling_sideways(visit):
    page = visit(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, device_scale_factor=2)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    wide = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide == [390, 390]
    for plot in page.locator(".plot").all():
        assert plot.locator(".main-svg").first.bounding_box()["width"] <= 390
    assert page.evaluate("[...document.querySelectorAll('.scroll')].some((one) => one.scrollWidth > one.clientWidth)")


def test_plots_follow_the_width_of_the_window(page):
    before = page.locator(".plot .main-svg").first.bounding_box()["width"]
    page.set_viewport_size({"width": 700, "height": 900})
    until(
        page, "(was) => document.querySelector('.plot .main-svg').getBoundingClientRect().width < was - 50", arg=before
    )


def test_paper_is_light_and_has_no_buttons(page):
    page.emulate_media(color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    until(page, "document.querySelector('.plot').layout.paper_bgcolor === '#ffffff'")
    assert colours(page)[0] == "rgb(255, 255, 255)"
    for hidden in ("button", "details.numbers", ".download", "input[type=checkbox]"):
        assert not page.locator(hidden).first.is_visible()
    assert page.locator("details.method").first.evaluate("(one) => one.open")
    assert page.locator("figure").first.evaluate("(one) => getComputedStyle(one).breakInside") == "avoid"
    page.emulate_media(media="screen", color_scheme="dark")
    until(page, "document.querySelector('.plot').layout.paper_bgcolor !== '#ffffff'")
    assert not page.locator("details.method").first.evaluate("(one) => one.open")


def test_it_can_be_printed(page):
    paper = page.pdf(format="A4")
    assert paper.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) >= 3


def test_files_can_be_saved(page, report):
    with page.expect_download() as saving:
        page.locator("a.download[download='staleness.csv']").click()
    assert saving.value.suggested_filename == "staleness.csv"
    content = Path(saving.value.path()).read_bytes().decode()
    rows = list(csv.DictReader(io.StringIO(content, newline="")))
    assert [float(row["loss"]) for row in rows] == [record["loss"] for record in report.sections[0].records]
    with page.expect_download() as saving:
        page.locator("a.download[download='staleness.parquet']").focus()
        page.keyboard.press("Enter")
    saved = Path(saving.value.path()).read_bytes()
    assert saved[:4] == saved[-4:] == b"PAR1"


def test_without_scripts_everything_is_still_there(browser, address, report):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert page.locator("noscript").is_visible()
    assert not page.locator("#theme").is_visible()
    assert page.locator(".findings li").count() == sum(len(section.findings) for section in report.sections)
    context.close()


def test_the_policy_forbids_requests_and_other_scripts(browser, address):
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    forbidden = page.evaluate(
        """async () => {
          const found = [];
          document.addEventListener("securitypolicyviolation", (event) => found.push(event.effectiveDirective));
          document.body.append(Object.assign(new Image(), { src: "http://127.0.0.1:9/spy.png" }));
          document.body.append(Object.assign(document.createElement("script"), { text: "window.ran = true" }));
          await fetch("http://127.0.0.1:9/spy").catch(() => null);
          await new Promise((done) => setTimeout(done, 300));
          return [found.sort(), window.ran === undefined];
        }"""
    )
    assert forbidden == [["connect-src", "img-src", "script-src-elem"], True]
    context.close()


def test_motion_is_only_for_those_who_want_it(page):
    behaviour = "getComputedStyle(document.documentElement).scrollBehavior"
    assert page.evaluate(behaviour) == "smooth"
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(behaviour) == "auto"
