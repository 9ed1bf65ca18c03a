"""Sizes and themes: nothing scrolls sideways, every control has a name and shows where the focus is; and pictures.

With DECODESCOPE_SCREENSHOTS=1 the pictures of the README are taken anew, into docs/images.
"""

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.app_server import ROOT
from tests.e2e.conftest import OpenApp
from tests.e2e.visitor import Visitor

FOLDER = ROOT / ("docs/images" if os.environ.get("DECODESCOPE_SCREENSHOTS") == "1" else "build/screenshots")
SIZES = {"desktop": (1280, 800), "phone": (390, 844)}

NAMELESS = """() => {
  const controls = "button, input, textarea, select, [role=button], [role=img], summary";
  const names = (node) =>
    [node.ariaLabel, node.title, node.textContent, ...[...(node.labels || [])].map((label) => label.textContent)];
  return [...document.querySelectorAll(controls)]
    .filter((node) => node.checkVisibility() && !names(node).some((text) => text && text.trim()))
    .map((node) => node.outerHTML.slice(0, 200));
}"""

#: The name of the focused control, and whether it or what encloses it looks other than without the focus.
LOOK = """() => {
  const looks = (node) => {
    const style = getComputedStyle(node);
    return [style.outlineStyle, style.outlineColor, style.boxShadow, style.borderColor, style.backgroundColor];
  };
  const node = document.activeElement;
  const around = [node, node.closest("label"), node.closest(".wrap"), node.closest(".block")].filter((one) => one);
  const focused = around.map(looks);
  node.blur();
  const plain = around.map(looks);
  node.focus({ focusVisible: true });
  return [node.id || node.ariaLabel || node.textContent.trim().slice(0, 30), String(focused) !== String(plain)];
}"""


def picture(page: Visitor, name: str) -> None:
    """Take a picture of what is in sight at the top of the page."""
    path: Path = FOLDER / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    page.page.mouse.move(0, 0)
    page.page.evaluate("window.scrollTo(0, 0)")
    page.page.screenshot(path=path)  # not with animations "disabled": the shadows at edges are some
    assert path.stat().st_size > 10_000


def at_paris(page: Visitor, station: str, *charts: str) -> None:
    """Select the step that gave " Paris", with a panel and its charts drawn."""
    page.run()
    page.open(station)
    page.select(42)
    for chart in charts:
        page.drawn(chart)


# Colours move nothing, so each size is walked through in one of the themes.
@pytest.mark.parametrize(("size", "dark"), [("desktop", True), ("phone", False)], ids=["desktop-dark", "phone-light"])
def test_no_station_makes_the_page_scroll_sideways_or_has_a_control_without_a_name(
    visit: OpenApp, size: str, dark: bool
) -> None:
    width, height = SIZES[size]
    page = visit(width=width, height=height, dark=dark)
    page.run()
    for station in page.stations:
        page.open(station)
        page.page.wait_for_selector("#right :is(td, .t, .main-svg, [id$=-reason] .fact):visible")
        assert page.page.evaluate("document.documentElement.scrollWidth") <= width, station
        assert page.page.evaluate(NAMELESS) == [], station
    page.control("mistake")  # opens all that is folded away
    assert page.page.evaluate(NAMELESS) == []
    ids = page.page.eval_on_selector_all("[id]:not([id=''])", "all => all.map((one) => one.id)")
    assert [one for one, count in Counter(ids).items() if count > 1] == []  # of all panels at once
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    outside = page.page.locator("#left > :not(.keyboard-only)").evaluate_all(
        """nodes => nodes.filter((node) => {
          const [inner, outer] = [node, node.parentElement].map((one) => one.getBoundingClientRect());
          return inner.left < outer.left || inner.right > outer.right;
        }).length"""
    )
    assert outside == 0
    assert page.page.evaluate("document.body.classList.contains('dark')") == dark
    assert page.page.evaluate("document.documentElement.lang") == "en"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pictures_of_the_first_screen(visit: OpenApp, dark: bool) -> None:
    page = visit(width=1280, height=980, dark=dark)
    at_paris(page, "processors", "sampling-slope", "sampling-draw")
    assert page.station("draw") == '"␣Paris"'
    picture(page, f"first-screen-{'dark' if dark else 'light'}")


def test_a_picture_of_the_cache(visit: OpenApp) -> None:
    page = visit(width=1280, height=980)
    at_paris(page, "kv_cache", "kv-growth")
    picture(page, "kv-cache")


def test_a_picture_of_a_phone(visit: OpenApp) -> None:
    page = visit(width=390, height=844)
    at_paris(page, "processors", "sampling-slope")
    picture(page, "phone")


def test_a_picture_of_a_lesson(visit: OpenApp) -> None:
    page = visit(width=1280, height=980)
    page.press("lessons")
    page.page.click('#lesson .lesson-card[data-id="paris"]')
    page.page.click("#lesson .lesson-note [data-do=next]")
    page.drawn("lens-ranks")
    picture(page, "lesson")


def test_the_focus_is_seen(visit: OpenApp) -> None:
    page = visit()
    reached = {}
    for _ in range(24):
        page.page.keyboard.press("Tab")
        name, seen = page.page.evaluate(LOOK)
        reached[name] = seen
    assert {"step", "run", "back", "new", "temperature", "top-k"} <= set(reached)
    assert [name for name, seen in reached.items() if not seen] == []
