"""For everybody: axe finds nothing of ours, keys reach and do everything, and a phone has room for fingers."""

from collections.abc import Iterator

import pytest

from tests.e2e.accessibility import violations
from tests.e2e.conftest import OpenApp
from tests.e2e.visitor import Visitor
from tests.patience import eventually

SHARED = ("logits", "draw", "text")  # stations in one panel with their neighbours
PARTS = 4  # axe reads the whole page each time, all panels that were ever open: on four pages they are fewer
SHOWN = "#right :is(td, .t, .main-svg, [id$=-reason] .fact):visible"
DARK = "dark => document.body.classList.toggle('dark', dark)"

#: Visible controls that a finger would miss, with their sizes. Words in running text are as high as their line.
SMALL = """() => [...document.querySelectorAll(
    "button, [role=button], a, input, textarea, summary, table.pick tbody tr, #language label")]
  .filter((node) => node.checkVisibility({ opacityProperty: true }) && !node.closest(".as-text, .keyboard-only"))
  .filter((node) => !node.matches("input:is([type=checkbox], [type=file])"))
  .map((node) => [node, node.getBoundingClientRect()])
  .filter(([, { width, height }]) => height > 0 && (height < 31.9 || width < 31.9))
  .map(([node, { width, height }]) =>
    `${Math.round(width)} × ${Math.round(height)}: ${node.outerHTML.slice(0, 120)}`)"""

#: Boxes that hold more than they show and that the keys cannot reach, that have no name then, or do not show it.
UNREACHED = """() => {
  const more = (box) => box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;
  const stop = (box) => (box.tabIndex >= 0 ? box : box.querySelector("[tabindex='0']"));
  const said = (node) => node.ariaLabel || node.textContent.trim();
  return [...document.querySelectorAll(".table-box, .plot, .heat-scroll, .rail-line, .strip-box, .lesson-text")]
    .filter((box) => box.checkVisibility() && /auto|scroll/.test(getComputedStyle(box).overflow) && more(box))
    .filter((box) => !stop(box) || !said(stop(box)) || !box.parentElement.matches(".edged"))
    .map((box) => box.outerHTML.slice(0, 120));
}"""


def each_panel(page: Visitor, part: int = 0, parts: int = 1) -> Iterator[str]:
    """Open one panel after the other, or those of one of so many parts; its station each time."""
    for station in [station for station in page.stations if station not in SHARED][part::parts]:
        page.open(station)
        page.page.wait_for_selector(SHOWN)
        yield station


def test_axe_finds_nothing_of_ours_on_the_first_screen_in_the_menu_and_in_the_settings(visit: OpenApp) -> None:
    page = visit(width=1280, height=800)
    found = {"first screen": violations(page.page)}
    page.press("record-menu > button")
    page.page.wait_for_selector("#record-save")
    found["record menu"] = violations(page.page, "#header")
    page.page.keyboard.press("Escape")
    page.run()
    page.control("mistake")  # opens all that is folded away
    found["conversation and settings"] = violations(page.page, "#left", "#status")
    assert {where: what for where, what in found.items() if what} == {}


@pytest.mark.parametrize("part", range(PARTS))
def test_axe_finds_nothing_of_ours_in_any_panel_in_light_and_dark(visit: OpenApp, part: int) -> None:
    page = visit(width=1280, height=800)
    page.run()
    page.control("mistake")  # opens all that is folded away
    found = {}
    for station in each_panel(page, part, PARTS):
        found[station] = violations(page.page, "#right")
        page.page.evaluate(DARK, True)
        found[f"{station}, dark"] = violations(page.page, "#right", rules=["color-contrast"])
        page.page.evaluate(DARK, False)
    assert {where: what for where, what in found.items() if what} == {}


def test_axe_finds_nothing_of_ours_on_a_phone_in_chinese(visit: OpenApp) -> None:
    page = visit(width=390, height=844, dark=True, locale="zh-CN")
    eventually(lambda: page.page.evaluate("document.documentElement.lang") == "zh", "Chinese")
    found = {"first screen": violations(page.page)}
    page.press("record-menu > button")
    page.page.wait_for_selector("#record-save")
    found["record menu"] = violations(page.page, "#header")
    page.press("lessons")
    page.page.wait_for_selector("#lesson .lesson-card")
    found["lessons"] = violations(page.page, "#lesson")
    page.page.click('#lesson .lesson-card[data-id="paris"]')
    page.page.click("#lesson .lesson-note [data-do=reveal]")
    eventually(lambda: page.shows("#lesson .lesson-answer"), "the answer")
    found["a lesson, over its record"] = violations(page.page)
    page.page.click("#lesson .lesson-note [data-do=close]")
    assert {where: what for where, what in found.items() if what} == {}


def test_a_phone_has_room_for_fingers_and_nothing_scrolls_out_of_reach(visit: OpenApp) -> None:
    page = visit(width=390, height=844)
    assert page.page.locator("#header").bounding_box()["height"] < 100  # two rows
    page.run()
    page.control("mistake")
    small, unreached = {}, {}
    for station in each_panel(page):
        page.page.wait_for_timeout(50)
        small[station], unreached[station] = page.page.evaluate(SMALL), page.page.evaluate(UNREACHED)
        assert page.page.evaluate("document.documentElement.scrollWidth") == 390, station
    assert {where: what for where, what in small.items() if what} == {}
    assert {where: what for where, what in unreached.items() if what} == {}


def test_keys_alone_open_the_menu_the_lessons_and_a_panel(visit: OpenApp) -> None:
    page = visit()
    keys, focused = page.page.keyboard, "document.activeElement.id"
    keys.press("Tab")
    assert page.page.evaluate("document.activeElement.className") == "skip"
    keys.press("Enter")
    assert page.page.evaluate(focused) == "right"
    page.page.focus("#record-menu > button")
    keys.press("Enter")
    page.page.wait_for_selector("#record-save")
    assert page.page.get_attribute("#record-menu > button", "aria-expanded") == "true"
    keys.press("Tab")
    assert page.page.evaluate("document.activeElement.closest('#record-menu') !== null")
    keys.press("Escape")
    page.page.wait_for_selector("#record-save", state="hidden")
    assert page.page.get_attribute("#record-menu > button", "aria-expanded") == "false"
    assert page.page.evaluate("document.activeElement.parentElement.id") == "record-menu"
    page.page.focus("#lessons")
    keys.press("Enter")
    page.page.wait_for_selector("#lesson .lesson-card")
    keys.press("Escape")
    page.page.wait_for_selector("#lesson .lesson", state="hidden")
    assert page.page.evaluate(focused) == "lessons"
    page.page.focus("#rail .rail-line .st[tabindex='0']")
    keys.press("ArrowRight")
    keys.press("Enter")
    page.page.wait_for_selector('#rail .st[data-id="tokens"][aria-current]')


def test_what_compares_branches_comes_with_the_first_branch(visit: OpenApp) -> None:
    page = visit()
    page.step(2)
    page.open("compare")
    page.page.wait_for_selector("#compare-branches td")
    page.page.wait_for_selector("#ask-take_branch", state="hidden")
    assert not page.shows("#compare-sides")
    page.set("seed", 5)
    page.press("step")
    page.page.wait_for_selector("#ask-take_branch")
    assert page.shows("#compare-sides")


def test_new_words_are_said_once_they_are_all_there(visit: OpenApp) -> None:
    page = visit()
    page.page.wait_for_timeout(1000)  # nothing is said of what was there
    assert page.texts("#heard [role=status]") == [""]
    page.run()
    answer = page.texts("#conversation .strip")[-1]
    eventually(lambda: page.texts("#heard [role=status]") == [answer], "the words of the answer")


def test_the_way_up_stays_in_sight_on_a_phone_and_leads_to_the_open_station(visit: OpenApp) -> None:
    page = visit(width=390, height=844)
    page.open("tokens")
    page.page.wait_for_selector("#tokens-table td")
    page.page.evaluate("window.scrollTo(0, 0)")
    page.page.wait_for_selector("#way-rail .way", state="hidden")
    for end in (False, True):
        page.page.evaluate("(end) => document.querySelector(end ? '#status' : '#tokens-table').scrollIntoView()", end)
        page.page.wait_for_selector("#way-rail .way", state="visible")
        box = page.page.locator("#way-rail .way").bounding_box()
        assert 0 < box["y"] < 844 - box["height"] and box["height"] >= 32
    assert page.page.locator("#way-note").is_hidden()  # no lesson is open
    page.page.focus("#way-rail .way")
    page.page.keyboard.press("Enter")
    eventually(lambda: 0 <= page.page.locator("#rail").bounding_box()["y"] < 200, "the rail")
    assert page.page.evaluate("document.activeElement.dataset.id") == "tokens"


def test_heads_of_tables_are_explained_to_keys_and_fingers(visit: OpenApp) -> None:
    page = visit()
    page.open("tokens")
    page.page.wait_for_selector("#tokens-table td")
    heads = page.page.locator("#tokens-table th[title]")
    told = [(head.inner_text(), head.get_attribute("title")) for head in heads.all()]
    assert len(told) > 1
    assert page.texts("#tokens-table .explained dt") == []  # made once somebody wants them
    page.page.focus("#tokens-table .explained summary")
    page.page.keyboard.press("Enter")
    eventually(lambda: page.texts("#tokens-table .explained dt") == [head for head, _ in told], "the heads")
    assert page.texts("#tokens-table .explained dd") == [text for _, text in told]
    page.page.click('#language label:has-text("中文")')
    eventually(lambda: page.texts("#tokens-table .explained dd") != [text for _, text in told], "Chinese")
    page.page.click("#tokens-merges th[title]")
    eventually(lambda: page.page.locator("#tokens-merges .explained dd").first.is_visible(), "a head, clicked")


def test_a_button_that_asks_says_so_until_the_answer_is_there(visit: OpenApp) -> None:
    page = visit()
    page.run()
    page.open("context")
    page.press("ask-policies")
    assert page.page.get_attribute("#ask-policies", "aria-busy") == "true"
    eventually(lambda: page.page.get_attribute("#ask-policies", "aria-busy") is None, "the answer")
    assert len(page.rows("context-policies")) > 1
    page.press("ask-policies")  # the same answer again, at once
    eventually(lambda: page.page.get_attribute("#ask-policies", "aria-busy") is None, "the same answer")


#: Whether the heading of a part is seen.
SEEN = """(id) => {
  const { top, bottom } = document.getElementById(`${id}-heading`).getBoundingClientRect();
  return top >= 0 && bottom <= window.innerHeight;
}"""


@pytest.mark.parametrize("width", [1280, 390])
def test_a_station_that_shares_its_panel_leads_to_its_own_part(visit: OpenApp, width: int) -> None:
    """Processors and Draw are one panel: a person who presses Draw sees the draw, not the processors again."""
    page = visit(width=width, height=800)
    page.step()
    for station, part, first in (("draw", "sampling-draw", "processors"), ("text", "stopping-answer", "stop")):
        page.open(first)
        eventually(lambda part=part: page.page.locator(f"#{part}").is_visible(), "the panel")
        assert not page.page.evaluate(SEEN, part)
        page.open(station)
        eventually(lambda part=part: page.page.evaluate(SEEN, part), f"{part} in sight")
        page.page.keyboard.press(str(page.stations.index(first) + 1))
        eventually(lambda: page.page.evaluate("document.getElementById('right').getBoundingClientRect().top >= -1"))
    page.open("prompt")  # the part is of a panel that is opened next
    page.open("draw")
    eventually(lambda: page.page.evaluate(SEEN, "sampling-draw"), "the part of a panel just opened")
