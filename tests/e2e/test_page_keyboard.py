"""The keyboard: arrows, space and digits drive the page, and none of them acts while somebody types."""

from tests.e2e.conftest import OpenApp
from tests.e2e.visitor import Visitor
from tests.patience import eventually


def key(page: Visitor, name: str) -> None:
    page.page.keyboard.press(name)


def test_arrows_make_tokens_and_move_along_them(visit: OpenApp) -> None:
    page = visit()
    for count in (1, 2, 3):
        key(page, "ArrowRight")
        eventually(lambda count=count: len(page.tokens) == count, "a token")  # type: ignore[misc]
    assert page.cursor == 39
    for position in (38, 37, 36):
        key(page, "ArrowLeft")
        eventually(lambda position=position: page.cursor == position, "the move")  # type: ignore[misc]
    assert len(page.tokens) == 3
    key(page, "ArrowRight")
    eventually(lambda: page.cursor == 37, "the move back")
    assert len(page.tokens) == 3


def test_each_of_several_quick_presses_of_an_arrow_counts(visit: OpenApp) -> None:
    page = visit()
    page.step(2)
    last, times = page.cursor, "(key) => { for (let i = 0; i < 5; i++) document.body.dispatchEvent(%s); }"
    quick = times % "new KeyboardEvent('keydown', { key, bubbles: true })"
    for name, end in (("ArrowLeft", last - 5), ("ArrowRight", last)):
        page.page.evaluate(quick, name)
        eventually(lambda end=end: page.cursor == end, "five moves")  # type: ignore[misc]
    assert len(page.tokens) == 2


def test_an_arrow_key_that_is_held_goes_to_the_end_and_makes_no_token(visit: OpenApp) -> None:
    page = visit()
    page.step(2)
    last = page.cursor
    for _ in range(6):
        key(page, "ArrowLeft")
    eventually(lambda: page.cursor == last - 6, "the moves back")
    for _ in range(60):
        page.page.keyboard.down("ArrowRight")  # held: each further one is a repetition
        page.page.wait_for_timeout(30)
    page.page.keyboard.up("ArrowRight")
    eventually(lambda: page.cursor == last, "the last token")
    key(page, "ArrowRight")  # comes after whatever the held key might have begun
    eventually(lambda: page.cursor == last + 1, "a token")
    assert len(page.tokens) == 3


def test_space_runs_and_pauses(visit: OpenApp) -> None:
    page = visit()
    page.set("min_new_tokens", 48)
    page.page.evaluate("document.activeElement.blur()")
    key(page, "Space")
    eventually(lambda: page.running and len(page.tokens) > 1, "the run")
    key(page, "Space")
    eventually(lambda: page.runs_ended == 1, "the pause")
    count = len(page.tokens)
    assert count < 48
    key(page, "Space")
    eventually(lambda: len(page.tokens) > count, "the run going on")
    key(page, "Space")
    eventually(lambda: page.runs_ended == 2, "the second pause")


def test_digits_choose_stations(visit: OpenApp) -> None:
    page = visit()
    for digit, station in (("5", "processors"), ("9", "kv_cache"), ("1", "prompt")):
        key(page, digit)
        page.page.wait_for_selector(f'#rail .st[data-id="{station}"][aria-current]')


def test_typing_a_message_does_nothing_else(visit: OpenApp) -> None:
    page = visit()
    page.page.focus("#message textarea")
    page.page.keyboard.type("9 5 to 1")
    key(page, "ArrowLeft")
    key(page, "ArrowRight")
    assert page.page.input_value("#message textarea") == "9 5 to 1"
    page.press("step")  # comes after whatever the keys might have begun
    eventually(lambda: page.tokens, "a token")
    assert len(page.tokens) == 1
    assert page.messages[1] == "9 5 to 1"
    page.page.wait_for_selector('#rail .st[data-id="prompt"][aria-current]')
