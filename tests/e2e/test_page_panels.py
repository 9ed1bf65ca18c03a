"""Every panel opens at every place of a run, and the checks that a person can ask for give their results."""

import pytest
from playwright.sync_api import Route

from tests.e2e.conftest import OpenApp
from tests.e2e.visitor import Visitor
from tests.patience import eventually

BODIES = {
    "prompt": "prompt",
    "context": "context",
    "turns": "turns",
    "tokens": "tokens",
    "tensors": "tensors",
    "logits": "sampling",
    "processors": "sampling",
    "draw": "sampling",
    "stop": "stopping",
    "text": "stopping",
    "kv_cache": "kv_cache",
    "run_table": "run_table",
}
NEED_A_TOKEN = {"sampling", "stopping", "kv_cache"}


def walk(page: Visitor) -> None:
    """Open every station: its panel is in sight, with something in it and no reason why not."""
    for station, panel in BODIES.items():
        page.open(station)
        page.page.wait_for_selector(f"#{panel}-body :is(td, .t, .main-svg):visible")
        assert page.texts(f"#{panel}-reason .fact") == []
    assert page.notice == ""


def test_before_any_token_a_panel_shows_the_prompt_or_says_why_not(visit: OpenApp) -> None:
    page = visit()
    for station, panel in BODIES.items():
        page.open(station)
        if panel in NEED_A_TOKEN:
            eventually(lambda panel=panel: page.texts(f"#{panel}-reason .fact"), "the reason")  # type: ignore[misc]
            assert page.texts(f"#{panel}-reason .fact")[0].endswith("Press Step.")
            assert not page.shows(f"#{panel}-body")
        else:
            page.page.wait_for_selector(f"#{panel}-body :is(td, .t):visible")
    assert page.notice == ""


def test_every_panel_opens_on_a_token_and_on_a_position_of_the_prompt(visit: OpenApp) -> None:
    page = visit()
    page.run()
    walk(page)
    page.select(40)
    walk(page)
    assert page.status[0] == "position 40 · step 3"
    page.select(12)
    walk(page)


def test_of_quick_choices_the_last_one_counts(visit: OpenApp) -> None:
    page = visit()
    page.run()
    for station in ("draw", "tokens", "kv_cache", "stop"):
        page.page.locator(f'#rail .st[data-id="{station}"]').evaluate("node => node.click()")
    page.page.wait_for_selector('#rail .st[data-id="stop"][aria-current]')
    page.page.wait_for_selector("#stopping-body td:visible")
    for position in (3, 38, 12, 40):
        page.page.locator(f'#timeline .t[data-position="{position}"]').evaluate("node => node.click()")
    eventually(lambda: page.cursor == 40, "the last choice")


def test_a_choice_that_is_late_on_its_way_does_not_undo_a_later_one(visit: OpenApp) -> None:
    page = visit()
    page.run()
    late: list[Route] = []
    page.page.route("**/queue/join*", lambda route: late.append(route) if not late else route.continue_())
    for position in (3, 40):
        page.page.locator(f'#timeline .t[data-position="{position}"]').evaluate("node => node.click()")
    eventually(lambda: page.cursor == 40, "the last choice")
    with page.page.expect_response("**/queue/join*"):
        late[0].continue_()
    page.open("draw")
    assert page.cursor == 40


def test_generate_gives_the_same_tokens(visit: OpenApp) -> None:
    page = visit()
    page.run()
    page.open("run_table")
    page.press("ask-parity")
    eventually(lambda: page.caption("run-parity").startswith("Both gave the same 8 ids"), "the comparison")
    ours, theirs = zip(*(row[2:] for row in page.rows("run-parity")), strict=True)
    assert ours == theirs
    assert "✓ loop = generate" in page.status


def test_a_step_computed_from_nothing_gives_the_same_logits(visit: OpenApp) -> None:
    page = visit()
    page.run()
    page.open("kv_cache")
    page.press("ask-uncached")
    eventually(lambda: page.rows("kv-uncached"), "both ways")
    assert "both ways put the same token first" in page.caption("kv-uncached")
    assert [row[1:3] for row in page.rows("kv-uncached")] == [["43", "1"], ["0", "44"]]
    assert "✓ cached = uncached" in page.status


def test_the_question_without_its_template_is_continued(visit: OpenApp) -> None:
    page = visit()
    page.run()
    page.open("prompt")
    page.press("ask-without_template")
    eventually(lambda: len(page.rows("prompt-compare")) == 2, "the other answer")
    templated, raw = page.rows("prompt-compare")
    assert templated[1:3] == ["37", "8"]
    assert templated[4] == "The capital of France is Paris."
    assert raw[1] == "7"
    assert "30 tokens longer" in page.caption("prompt-compare")


@pytest.mark.parametrize("station", ["processors", "kv_cache"])
def test_a_chart_shows_its_numbers_as_a_table(visit: OpenApp, station: str) -> None:
    page = visit()
    page.run()
    page.open(station)
    fold = page.page.locator("#right .numbers summary:visible").first
    fold.click()
    assert fold.locator("xpath=../div//tbody/tr").count() > 1
