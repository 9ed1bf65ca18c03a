"""Every lesson played to its end in the browser, in both languages, from its record alone: no model is loaded."""

import pytest

from components.lesson_player.library import read_library
from components.lesson_player.places import PANEL_OF, station_of
from engine.catalog import load_catalog
from engine.lesson_text import fill
from tests.e2e import app_server
from tests.e2e.browser import DRAWN
from tests.e2e.conftest import OpenPage
from tests.patience import eventually

LIBRARY = read_library(load_catalog().loadable_ids)
LOCALES = {"en": "en-US", "zh": "zh-CN"}


@pytest.fixture(scope="module")
def replayed():
    """The app over the record of one lesson, where torch cannot be imported: it has all lessons."""
    with app_server.replaying(LIBRARY.shelf.listed("en")[0].record) as address:
        yield address


#: Whether a part of the panel is marked, and its beginning is seen under the note.
IN_SIGHT = """(id) => {
  const place = document.getElementById(`${id}-heading`) || document.getElementById(id);
  const note = document.querySelector("#lesson .lesson").getBoundingClientRect();
  const { top } = place.getBoundingClientRect();
  return place.hasAttribute("data-pointed") && top >= note.bottom && top < window.innerHeight - 100;
}"""


class Student:
    """Someone who plays lessons; every wait is for what must come."""

    def __init__(self, page):
        self.page = page
        page.set_default_timeout(60_000)
        page.wait_for_selector("#timeline .t")

    def open(self, lesson):
        self.page.click("#lessons")
        self.page.click(f'#lesson .lesson-card[data-id="{lesson.id}"]')

    def press(self, action):
        self.page.click(f'#lesson .lesson-note [data-do="{action}"]')

    def paragraphs(self, part):
        return self.page.locator(f"#lesson .lesson-text > {part} p").all_inner_texts()

    def reads(self, lesson, number):
        """Wait until the note of that number is there, and give it."""
        note = lesson.written.notes[number]
        wanted = fill(note.look, LIBRARY.values(lesson)).split("\n\n")
        eventually(lambda: self.paragraphs(".lesson-paragraphs") == wanted, f"{lesson.name}: note {number + 1}")
        return note

    def awaits(self, lesson, number):
        """Wait until the note of that number is there with its panel, and nothing else."""
        note = self.reads(lesson, number)
        self.page.wait_for_selector(f'#rail .st[data-id="{station_of(note.panel)}"][aria-current]')
        body = self.page.locator(f"#{PANEL_OF[note.panel].STATION}-body")
        eventually(lambda: body.is_visible() and body.bounding_box()["height"] > 60, f"{lesson.name}: {note.panel}")
        eventually(lambda: body.locator(".ds-widget > div:not([hidden])").count(), "something drawn in the panel")
        assert self.page.locator("#lesson .lesson-note [data-do=here]").is_hidden()
        if note.part and self.page.viewport_size["width"] > 900:
            eventually(lambda: self.page.evaluate(IN_SIGHT, note.part), f"{lesson.name}: {note.part} in sight")


@pytest.mark.parametrize("language", LOCALES)
def test_every_lesson_is_played_to_its_end(replayed: str, browser_page: OpenPage, language: str) -> None:
    student = Student(browser_page(replayed, locale=LOCALES[language]).page)
    for lesson in LIBRARY.shelf.listed(language):
        student.open(lesson)
        for number, note in enumerate(lesson.written.notes):
            student.awaits(lesson, number)
            if note.answer:
                student.press("reveal")
                wanted = fill(note.answer, LIBRARY.values(lesson)).split("\n\n")
                eventually(lambda wanted=wanted: student.paragraphs(".lesson-answer") == wanted, "the answer")
            student.press("next")
        student.awaits(lesson, 0)


def test_keys_turn_the_notes_and_who_wanders_off_comes_back(replayed: str, browser_page: OpenPage) -> None:
    page = browser_page(replayed, locale="en-US").page
    student, lesson = Student(page), LIBRARY.shelf.find("paris", "en")
    student.open(lesson)
    student.awaits(lesson, 0)
    assert page.evaluate("document.activeElement.textContent") == lesson.written.title
    for key, number in (("n", 1), ("n", 2), ("p", 1)):
        page.keyboard.press(key)
        student.awaits(lesson, number)
    page.click('#rail .st[data-id="tokens"]')
    student.press("here")
    student.awaits(lesson, 1)
    page.click("#lessons")
    page.wait_for_selector("#lesson .lesson-card[aria-current]")
    page.click("#lessons")
    student.awaits(lesson, 1)
    page.dblclick("#lesson .lesson-note [data-do=reveal]")
    eventually(lambda: student.paragraphs(".lesson-answer"), "the answer, though its button was pressed twice")
    page.dblclick("#lesson .lesson-note [data-do=list]")
    page.wait_for_selector("#lesson .lesson-card[aria-current]")
    page.keyboard.press("Escape")
    student.awaits(lesson, 1)
    assert student.paragraphs(".lesson-answer")
    student.press("close")
    page.wait_for_selector("#lesson .lesson", state="hidden")


def test_space_scrolls_the_note_that_has_the_focus_and_runs_nothing(replayed: str, browser_page: OpenPage) -> None:
    page = browser_page(replayed, height=640, locale="en-US").page
    student, lesson = Student(page), LIBRARY.shelf.find("paris", "en")
    student.open(lesson)
    student.awaits(lesson, 0)
    pressed = "document.getElementById('run').addEventListener('click', () => { window.pressed = true; })"
    page.evaluate(pressed)
    page.evaluate("document.querySelector('#lesson .lesson-text').style.maxHeight = '40px'")
    page.focus('#lesson .lesson-text[tabindex="0"]')
    page.keyboard.press("Space")
    eventually(lambda: page.evaluate("document.querySelector('#lesson .lesson-text').scrollTop") > 0, "the scrolling")
    assert page.evaluate("window.pressed") is None


#: Puts a stop of the Tab key under the note, and the focus on the next one, which is well below.
COVER = """() => {
  const bottom = document.querySelector("#lesson .lesson").getBoundingClientRect().bottom;
  const selector = '#right .tabitem :is(button, input, summary, [tabindex="0"]):not([tabindex="-1"])';
  const stops = [...document.querySelectorAll(selector)].filter((node) => node.checkVisibility());
  const place = (node) => node.getBoundingClientRect();
  const at = stops.findIndex((node, index) => index && place(node).top - place(stops[index - 1]).bottom > 60);
  window.covered = stops[at - 1];
  stops[at].focus({ preventScroll: true });
  window.scrollBy({ top: place(covered).bottom - bottom + 20, behavior: "instant" });
}"""
UNDER = "document.querySelector('#lesson .lesson').getBoundingClientRect().bottom - covered.getBoundingClientRect().top"


def test_what_the_keyboard_comes_to_is_not_left_under_the_note(replayed: str, browser_page: OpenPage) -> None:
    page = browser_page(replayed, locale="en-US").page
    student, lesson = Student(page), LIBRARY.shelf.find("layer", "en")
    student.open(lesson)
    student.awaits(lesson, 0)
    page.evaluate(COVER)
    page.evaluate(DRAWN)
    assert page.evaluate(UNDER) > 0
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement === covered")
    eventually(lambda: page.evaluate(UNDER) <= 0, "the way out from under the note")


def test_a_button_that_goes_away_hands_the_focus_on(replayed: str, browser_page: OpenPage) -> None:
    page = browser_page(replayed, locale="en-US").page
    student, lesson = Student(page), LIBRARY.shelf.find("paris", "en")
    title = f"document.activeElement.textContent === {lesson.written.title!r}"
    opener = "document.activeElement.id === 'lessons'"

    def press(part: str, action: str, wanted: str) -> None:
        button = page.locator(f"#lesson .lesson-{part} [data-do={action}]")
        button.wait_for()
        button.focus()
        page.keyboard.press("Enter")
        eventually(lambda: page.evaluate(wanted), f"the focus after {action}")

    page.click("#lessons")
    page.wait_for_selector("#lesson .lesson-shelf", state="visible")
    press("shelf", "list", opener)
    student.open(lesson)
    student.awaits(lesson, 0)
    page.click('#rail .st[data-id="tokens"]')
    press("note", "here", title)
    student.awaits(lesson, 0)
    press("note", "next", "document.activeElement.dataset.do === 'next'")
    student.awaits(lesson, 1)
    assert page.evaluate("document.activeElement.dataset.do") == "next"
    press("note", "back", title)
    student.awaits(lesson, 0)
    press("note", "close", opener)


#: What the page does before its next picture waits, until it is released.
HOLD = """() => {
  window.frame = window.requestAnimationFrame.bind(window);
  window.held = [];
  window.requestAnimationFrame = (draw) => window.held.push(draw);
}"""
RELEASE = """() => new Promise((drawn) => {
  window.requestAnimationFrame = window.frame;
  for (const draw of window.held) frame(draw);
  frame(() => frame(drawn));
})"""


def over_the_lessons_button(page):
    """The pointer, on a page that was scrolled up to it by no act of a person."""
    page.evaluate("window.scrollTo({ top: 0, behavior: 'instant' })")
    button = page.locator("#lessons").bounding_box()
    page.mouse.move(button["x"] + 10, button["y"] + 10)


@pytest.mark.parametrize("pressed", [True, False])
def test_the_page_never_moves_under_a_button_that_is_pressed(
    replayed: str, browser_page: OpenPage, pressed: bool
) -> None:
    """A click ends where it began: a page that scrolls to the part of a note in between would lose it."""
    page = browser_page(replayed, locale="en-US").page
    student, lesson = Student(page), LIBRARY.shelf.find("layer", "en")
    student.open(lesson)
    student.awaits(lesson, 0)
    page.evaluate(HOLD)
    student.press("next")
    page.wait_for_selector(f"#{lesson.written.notes[1].part}-heading[data-pointed]")
    over_the_lessons_button(page)
    if pressed:
        page.mouse.down()
    page.evaluate(RELEASE)
    assert (page.evaluate("window.scrollY") == 0) is pressed
    if pressed:
        page.mouse.up()
        page.wait_for_selector("#lesson .lesson-shelf", state="visible")


@pytest.mark.parametrize("act", ["press", "wheel"])
def test_who_presses_or_scrolls_before_the_panel_is_there_is_left_alone(
    replayed: str, browser_page: OpenPage, act: str
) -> None:
    page = browser_page(replayed, locale="en-US").page
    student, lesson = Student(page), LIBRARY.shelf.find("layer", "en")
    student.open(lesson)
    student.awaits(lesson, 0)
    part = lesson.written.notes[1].part
    late = page.add_style_tag(content=f"#{part} {{ display: none !important; }}")
    student.press("next")
    student.reads(lesson, 1)
    over_the_lessons_button(page)
    if act == "press":
        page.mouse.down()
    else:
        page.mouse.wheel(0, -10)
        page.evaluate(DRAWN)
    late.evaluate("sheet => sheet.remove()")
    page.wait_for_selector(f"#{part}-heading[data-pointed]")
    page.evaluate(DRAWN)
    assert page.evaluate("window.scrollY") == 0
    if act == "press":
        page.mouse.up()
        page.wait_for_selector("#lesson .lesson-shelf", state="visible")


@pytest.mark.parametrize("width", [1280, 390])
def test_a_note_that_comes_while_a_button_is_pressed_moves_nothing(
    replayed: str, browser_page: OpenPage, width: int
) -> None:
    page = browser_page(replayed, width=width, locale="en-US").page
    student, lesson = Student(page), LIBRARY.shelf.find("layer", "en")
    student.open(lesson)
    student.awaits(lesson, 0)
    over_the_lessons_button(page)
    page.mouse.down()
    page.keyboard.press("n")
    page.wait_for_selector(f"#{lesson.written.notes[1].part}-heading[data-pointed]")
    page.evaluate(DRAWN)
    assert page.evaluate("window.scrollY") == 0
    page.mouse.up()
    page.wait_for_selector("#lesson .lesson-shelf", state="visible")


def test_on_a_phone_the_note_stands_above_its_panel_and_the_conversation_below(
    replayed: str, browser_page: OpenPage
) -> None:
    page = browser_page(replayed, width=390, height=844, locale="en-US").page
    student, lesson = Student(page), LIBRARY.shelf.find("paris", "en")
    student.open(lesson)
    student.awaits(lesson, 0)
    student.press("next")
    student.awaits(lesson, 1)
    tops = [page.locator(where).bounding_box()["y"] for where in ("#lesson", "#lens-ranks", "#left")]
    assert tops == sorted(tops)
    assert 0 <= tops[0] < 60
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    top = "document.getElementById('lens-ranks-heading').getBoundingClientRect().top"
    assert page.evaluate(top) > 300
    page.locator("#lesson .lesson-point").focus()
    page.keyboard.press("Enter")
    eventually(lambda: 0 <= page.evaluate(top) < 40, "the part at the top of the screen")
    assert page.evaluate("document.activeElement.id") == "lens-ranks-heading"
    page.click("#way-note .way")
    eventually(lambda: 0 <= page.locator("#lesson").bounding_box()["y"] < 60, "the note")
    assert page.evaluate("document.activeElement.textContent") == lesson.written.title
    assert page.locator("#way-note .way").is_hidden()
