"""Attention on the page: a head is chosen on the map, its matrix comes on demand, and a row of it moves the cursor."""

from tests.e2e.conftest import OpenApp
from tests.e2e.visitor import Visitor
from tests.patience import eventually

LAYERS, HEADS = 30, 9


def click_cell(page: Visitor, heatmap: str, row: int, rows: int, column: int, columns: int) -> None:
    canvas = page.page.locator(f"#{heatmap} canvas.heat-cells")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    canvas.click(
        position={"x": box["width"] * (column + 0.5) / columns, "y": box["height"] * (row + 0.5) / rows},
    )


def test_a_head_is_chosen_its_matrix_shown_and_a_row_gone_to(visit: OpenApp) -> None:
    page = visit()
    page.step(4)
    page.open("attention")
    assert page.station("attention") == "9 / 3 heads"
    eventually(lambda: len(page.rows("attention-kinds")) == HEADS, "the heads")
    click_cell(page, "attention-map", 4, HEADS, 17, LAYERS)
    eventually(lambda: page.note("attention") == "layer 17 · head 4", "the head")
    notes = " ".join(page.texts("#attention-notes .strip-label"))
    assert "Layer 17, head 4, from position 39" in notes
    assert "Heads 3, 4, 5 share key/value head 1" in notes
    moves = page.rows("attention-moves")
    assert moves[-1][1] == "sum"
    assert moves[-1][5] == "1.0000"
    page.page.click("#attention-kinds tbody tr:nth-child(6)")
    eventually(lambda: page.note("attention") == "layer 17 · head 5", "the next head")
    page.press("ask-attention_matrix")
    eventually(lambda: page.shows("#attention-matrix canvas.heat-cells"), "the matrix")
    click_cell(page, "attention-matrix", 20, 40, 2, 40)
    eventually(lambda: page.cursor == 20, "the row")
    eventually(lambda: "from position 20" in page.texts("#attention-notes .strip-label")[0], "its weights")
    assert page.notice == ""


def test_on_a_phone_buttons_choose_a_head(visit: OpenApp) -> None:
    page = visit(width=390, height=844)
    page.step()
    page.open("attention")
    page.page.wait_for_selector("#attention-map .pad-key >> nth=4")
    for name in ("One cell to the right", "One cell down", "One cell down"):
        page.page.click(f'#attention-map [aria-label="{name}"]')
    assert page.texts("#attention-map output")[0].startswith("KV 0 · head 2 × L1: ")
    assert page.note("attention") == "layer 0 · head 0"  # only looked at yet
    page.page.click('#attention-map [aria-label="Choose this cell"]')
    eventually(lambda: page.note("attention") == "layer 1 · head 2", "the head")
