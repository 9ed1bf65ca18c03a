"""The embedding of a token on the page: its neighbours, a sum that a person types, and scores by distance."""

from tests.e2e.conftest import OpenApp
from tests.e2e.test_page_lens import PARIS
from tests.patience import eventually


def test_rows_sums_and_angles_follow_what_is_chosen_and_typed(visit: OpenApp) -> None:
    page = visit()
    page.set("use_template", False)
    page.type(PARIS["prompt"] + " Paris")
    page.press("step")
    eventually(lambda: len(page.tokens) == 1, "the token")
    page.open("embedding")
    eventually(lambda: page.rows("embedding-neighbours"), "the neighbours")
    assert [row[0] for row in page.rows("embedding-neighbours")[:3]] == ["Paris", "␣London", "␣France"]
    assert (page.station("embedding"), page.note("embedding")) == ("‖e‖ 2.20", "tied")
    assert page.rows("embedding-sums")[0][:2] == ["␣queen", "0.716"]
    assert page.texts("#embedding-sums-note .strip-label") == ["“␣king” − “␣man” + “␣woman”"]
    spreads = [float(row[-1]) for row in page.rows("embedding-phase")]
    assert len(spreads) == 9 and max(spreads) < 1e-2
    assert not page.shows("#embedding-learned")

    page.page.fill("#embedding-look-up textarea", "Paris - France + China")
    page.page.press("#embedding-look-up textarea", "Enter")
    eventually(lambda: page.rows("embedding-sums")[0][:2] == ["␣Beijing", "0.563"], "the other sum")
    page.page.fill("#embedding-look-up textarea", "Paris - Francophone + <b>")
    page.page.press("#embedding-look-up textarea", "Enter")
    eventually(lambda: page.texts("#embedding-sums-note .strip-label") == ["No sum"], "the refusal")
    assert not page.shows("#embedding-sums")

    page.page.locator("#embedding-angles canvas.heat-cells").focus()
    for _ in range(8):
        page.page.keyboard.press("ArrowLeft")
    page.page.keyboard.press("Enter")
    eventually(lambda: page.cursor == 4, "the position chosen in the picture")
    eventually(lambda: page.texts("#embedding-where .fact")[0].startswith("Position 4,"), "its row")
