"""Another candidate leaves a branch that stands beside the run; a grid shows one prompt under several settings."""

from tests.e2e.conftest import OpenApp
from tests.patience import eventually


def test_another_candidate_makes_a_branch_and_one_can_go_back(visit: OpenApp) -> None:
    page = visit()
    page.set("max_new_tokens", 8)
    page.run()
    first = page.tokens
    position = int(page.page.locator("#timeline .t[data-state=sampled]").nth(2).get_attribute("data-position") or "")
    page.select(position)
    page.open("processors")
    eventually(lambda: page.rows("sampling-candidates"), "the candidates")
    page.page.locator("#sampling-candidates tbody tr").nth(1).click()
    eventually(lambda: len(page.tokens) == 3 and page.tokens != first[:3], "the other token")
    other = page.tokens[2]
    page.open("compare")
    eventually(lambda: len(page.rows("compare-sides")) == 8, "the two runs")
    assert page.note("compare") == "parts at step 2"
    assert f"part: {other} here, {first[2]} there" in page.caption("compare-sides")
    parted = page.rows("compare-sides")[2]
    assert (parted[0], parted[1], parted[4]) == ("2", other, first[2])
    assert all(parted[column] for column in (2, 3, 5, 6))  # all four probabilities are there
    assert page.rows("compare-sides")[7][4] == first[7]
    page.press("ask-take_branch")
    eventually(lambda: page.tokens == first, "the branch")
    eventually(lambda: page.rows("compare-branches")[1][1] == f"step 2: {other}", "the other way as a branch")


def test_a_message_is_edited_by_keyboard_and_a_cell_of_a_grid_becomes_the_run(visit: OpenApp) -> None:
    page = visit()
    page.set("max_new_tokens", 6)
    page.step()
    page.type("A draft.")
    page.page.focus("#edit")
    page.page.keyboard.press("Enter")
    eventually(lambda: page.page.input_value("#message textarea") != "A draft.", "the message in its field")
    assert "Message 1 is in the field" in page.notice
    page.type("Name a color.")
    page.press("save-edit")
    eventually(lambda: "Name a color." in page.messages and not page.tokens, "the edited message")
    assert not page.shows("#save-edit")
    eventually(lambda: page.page.input_value("#message textarea") == "A draft.", "the draft back in its field")
    page.type("")
    page.open("compare")
    page.page.fill("#grid-temperatures textarea, #grid-temperatures input", "0, 1.5")
    page.press("grid")
    eventually(lambda: "forward passes" in page.caption("compare-grid"), "the grid")
    rows = page.rows("compare-grid")
    assert [row[0] for row in rows] == [f"temperature {hot}, seed {seed}" for hot in ("0", "1.5") for seed in (1, 2)]
    assert rows[0][5] == rows[1][5]
    assert rows[3][5].count("▸") == 1
    assert page.texts("#compare-map .heat-texts span")[0] == page.texts("#compare-map .heat-texts span")[6]
    page.page.locator("#compare-grid tbody tr").nth(3).click()
    eventually(lambda: page.control("temperature").input_value() == "1.5", "the cell's settings in the form")
    page.run()
    assert page.messages[-1] == rows[3][5].replace("▸", "")
