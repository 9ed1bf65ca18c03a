"""The inside of the model on the page: " Paris" climbs from beyond rank 1,000 to 1, and views lead to their places."""

import json

import pytest

from tests.e2e.app_server import ROOT
from tests.e2e.conftest import OpenApp
from tests.e2e.test_page_attention import click_cell
from tests.e2e.visitor import Visitor
from tests.patience import eventually

GOLDEN = json.loads((ROOT / "tests" / "golden" / "facts.json").read_text("utf-8"))
PARIS = GOLDEN["smollm2-135m-instruct-q4_1"]["weights_embedded"]


@pytest.fixture
def at_is(visit: OpenApp) -> Visitor:
    """A visitor whose raw prompt was continued by one token."""
    page = visit()
    page.set("use_template", False)
    page.type(PARIS["prompt"])
    page.press("step")
    eventually(lambda: page.tokens == ["␣Paris"], "the token")
    return page


def test_paris_climbs_from_beyond_a_thousand_to_the_top(at_is: Visitor) -> None:
    at_is.open("lens")
    eventually(lambda: at_is.rows("lens-rows"), "the lens")
    ranks = [row[4] for row in at_is.rows("lens-rows")]
    for row, rank in PARIS["paris_rank_by_lens_row"].items():
        assert ranks[int(row)] == f"{rank:,}"
    assert (at_is.station("lens"), at_is.note("lens")) == ("#1 at 29", "p .962")
    at_is.drawn("lens-ranks")
    eventually(lambda: "␣Paris 1" in at_is.texts("#lens-ranks .annotation-text"), "the newest figure")
    eventually(lambda: "last lens row = logits" in " ".join(at_is.status), "the check")
    at_is.page.fill("#lens-look-up textarea", " Berlin")
    at_is.page.press("#lens-look-up textarea", "Enter")
    eventually(lambda: "rank of ␣Berlin" in at_is.texts("#lens-rows th"), "the other token")
    guess = at_is.rows("lens-rows")[12][1]
    assert f"rank of {guess}" not in at_is.texts("#lens-rows th")
    at_is.page.locator("#lens-rows tbody tr").nth(12).click()
    eventually(lambda: f"rank of {guess}" in at_is.texts("#lens-rows th"), "the guess of the chosen row")
    assert at_is.rows("lens-rows")[12][at_is.texts("#lens-rows th").index(f"rank of {guess}")] == "1"
    at_is.page.locator("#lens-rows tbody tr").nth(12).click()
    eventually(lambda: f"rank of {guess}" not in at_is.texts("#lens-rows th"), "the guess let go")


def test_the_map_shows_every_guess_and_moves_the_cursor(at_is: Visitor) -> None:
    at_is.open("lens")
    at_is.press("ask-lens_map")
    eventually(lambda: at_is.texts("#lens-map .heat-texts span"), "the map")
    guesses = at_is.texts("#lens-map .heat-texts span")
    assert len(guesses) == 31 * 12
    assert guesses[-1] == "␣Paris"
    at_is.page.locator("#lens-map canvas.heat-cells").focus()
    for _ in range(11):
        at_is.page.keyboard.press("ArrowLeft")
    at_is.page.keyboard.press("Enter")
    eventually(lambda: at_is.cursor == 0, "the first position")
    eventually(lambda: at_is.texts("#lens-where .fact")[0].startswith("Position 0"), "its lens")


def test_the_layers_show_who_moved_the_token(at_is: Visitor) -> None:
    at_is.open("layers")
    eventually(lambda: at_is.texts("#residual-shares-note .strip-label"), "the shares")
    assert at_is.texts("#residual-shares-note .strip-label")[0].startswith("The attention of layer 23")
    assert "together 17.91" in at_is.texts("#residual-shares-note .strip-note")[0]
    assert at_is.note("layers") == "‖h‖ 3 → 535"
    assert not at_is.shows("#residual-positions")
    at_is.press("ask-norms")
    eventually(lambda: at_is.shows("#residual-positions .main-svg"), "the norms by position")
    at_is.select(0)
    eventually(lambda: "sees only itself" in " ".join(at_is.texts("#residual-stream-note .strip-note")), "the sink")


def test_attention_at_is_has_the_weights_that_transformers_gives(at_is: Visitor) -> None:
    row = json.loads((ROOT / "tests" / "golden" / "inside.json").read_text("utf-8"))["rows"]["9.4"]
    at_is.open("attention")
    eventually(lambda: at_is.rows("attention-kinds"), "the heads")
    click_cell(at_is, "attention-map", 4, 9, 9, 30)
    eventually(lambda: at_is.note("attention") == "layer 9 · head 4", "the head")
    weights = [float(cells[5]) for cells in at_is.rows("attention-moves")[:10]]
    assert weights == pytest.approx(sorted(row, reverse=True)[:10], abs=6e-4)  # three digits, the largest first
