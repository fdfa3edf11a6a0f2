"""The built site as a reader meets it: in a browser, light and dark, by keyboard, on a phone, without a network."""

from __future__ import annotations

import functools
import re
import runpy
import shutil
import threading
import zlib
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from contrast import FAINT

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built: make docs"),
]

KINDS = {  # a page of each kind
    "front": "index.html",
    "tutorial": "tutorials/scikit_learn.html",
    "recipe": "howto/larger_than_memory.html",
    "guide": "guide/linear.html",
    "gallery": "gallery/index.html",
    "example": "gallery/staleness.html",
    "formulas": "explanation/what_is_minimised.html",
    "picture": "explanation/buffers.html",
    "list of names": "reference/api.html",
    "function": "reference/generated/hogwild.minimise.html",
    "class": "reference/generated/hogwild.HogwildClassifier.html",
    "command": "reference/commands/train.html",
    "events": "reference/events.html",
    "figures": "benchmarks/speed.html",
    "decision": "decisions/0006-buffers-for-frequent-coordinates.html",
    "coming from": "coming_from/vowpal_wabbit.html",
    "contributing": "project/contributing.html",
}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_arguments):
        pass


@pytest.fixture(scope="module")
def address():
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


def given_up(asked):
    """Whether the browser itself gave a request up, because its page was left before the answer was there."""
    return asked.failure == "net::ERR_ABORTED"


@pytest.fixture
def visit(browser, address):
    """Open pages; at the end nothing may have complained, failed, or come from elsewhere."""
    contexts, complaints = [], []

    def opened(path, **settings):
        context = browser.new_context(**settings)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda asked: None if given_up(asked) else complaints.append(f"failed: {asked.url}"))
        page.on("response", lambda got: complaints.append(f"{got.status}: {got.url}") if got.status >= 400 else None)
        page.on(
            "request", lambda asked: None if asked.url.startswith((address, "data:")) else complaints.append(asked.url)
        )
        page.goto(f"{address}/{path}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def test_no_internal_link_is_broken():
    tool = runpy.run_path(str(ROOT / "tools" / "links"))
    assert list(tool["broken"](SITE)) == []
    assert len(tool["pages"](SITE)) > 200


def test_every_public_name_and_member_has_a_place():
    """The inventory of the site is what other projects link to; the golden list is what is public."""
    stored = (SITE / "objects.inv").read_bytes().split(b"\n", 4)[4]
    names = {line.split(" ")[0] for line in zlib.decompress(stored).decode().splitlines()}
    kind, missing = "", []
    for line in (ROOT / "tests" / "golden" / "public_api.txt").read_text().splitlines():
        found = re.match(r"(class|def) (\w+)|    (\w+)", line)
        if found is None:
            continue
        kind = found[2] or kind
        name = f"hogwild.{kind}" + (f".{found[3]}" if found[3] else "")
        missing += [] if name in names else [name]
    routing = r"hogwild\.\w+\.set_\w+_request"  # scikit-learn makes these methods
    assert [name for name in missing if not re.fullmatch(routing, name)] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_texts_can_be_read(visit, kind, scheme):
    page = visit(KINDS[kind], color_scheme=scheme, viewport={"width": 1280, "height": 900})
    page.wait_for_function("document.documentElement.dataset.theme !== undefined")
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    page.wait_for_timeout(300)  # colours fade from one scheme to the other
    count, faint = page.evaluate(FAINT)
    assert count > 20
    assert faint == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_phone_shows_it_without_scrolling_sideways(visit, kind):
    page = visit(KINDS[kind], viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator("h1").first.is_visible()


def test_a_phone_has_the_navigation_in_a_drawer(visit):
    page = visit(KINDS["guide"], viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    link = page.locator(".bd-sidebar-primary a", has_text="Reference").first
    assert not link.is_visible()
    page.locator("button.primary-toggle").tap()
    link.wait_for(state="visible")
    link.tap()
    page.wait_for_url("**/reference/index.html")


def focused(page):
    return page.evaluate(
        """() => {
          const at = document.activeElement;
          const words = at.textContent || at.getAttribute("aria-label") || "";
          return [at.tagName, words.trim().slice(0, 40), at.className];
        }"""
    )


def test_the_keyboard_reaches_navigation_and_search(visit):
    page = visit(KINDS["guide"], viewport={"width": 1280, "height": 900})
    seen = []
    for _ in range(25):
        page.keyboard.press("Tab")
        seen.append(focused(page))
    words = " ".join(text for _, text, _ in seen)
    assert "Skip to main content" in seen[0][1]
    assert all(name in words for name in ("hogwild", "Tutorials", "How to", "Guide", "Reference"))
    assert any("search-button" in kind for _, _, kind in seen)
    assert any("theme-switch" in kind for _, _, kind in seen)


def test_the_skip_link_leads_to_the_text(visit):
    page = visit(KINDS["guide"])
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id || location.hash") in ("main-content", "#main-content")


def test_search_finds_by_keyboard(visit):
    page = visit(KINDS["front"])
    page.keyboard.press("Control+K")
    page.keyboard.type("staleness")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=staleness")
    page.locator("#search-results li a").first.wait_for()
    found = page.locator("#search-results li a").all_inner_texts()
    assert any("Staleness" in text for text in found)


def test_the_button_changes_the_scheme(visit):
    page = visit(KINDS["front"], color_scheme="light", viewport={"width": 1280, "height": 900})
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("button.theme-switch-button:visible").first.click()
    page.locator("[data-mode=dark]:visible").last.click()
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    page.wait_for_timeout(300)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_formulas_are_drawn_by_the_browser(visit):
    page = visit(KINDS["formulas"])
    sizes = page.evaluate("[...document.querySelectorAll('math')].map((each) => each.getBoundingClientRect().height)")
    assert len(sizes) > 10
    assert min(sizes) > 5


def test_examples_show_their_output_and_pictures(visit):
    page = visit(KINDS["example"])
    assert "asynchronous" in page.locator(".sphx-glr-script-out").first.inner_text()
    assert page.locator("img.sphx-glr-single-img").first.evaluate("(image) => image.naturalWidth") > 300


def test_every_picture_has_a_description():
    lacking = [
        str(path.relative_to(SITE))
        for folder in ("tutorials", "howto", "guide", "explanation", "coming_from", "reference")
        for path in (SITE / folder).glob("*.html")
        if re.search(r'<img(?![^>]*(?:\balt="[^"]+|logo__image))[^>]*>', path.read_text())
    ]
    assert lacking == []
