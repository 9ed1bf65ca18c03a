"""One layer on the page: worked out by hand it is the model's, and layer and operation are chosen by a click."""

from tests.e2e.conftest import OpenApp
from tests.patience import eventually


def test_a_layer_is_taken_apart(visit: OpenApp) -> None:
    page = visit()
    page.step()
    page.open("layer")
    eventually(lambda: len(page.rows("layer-operations")) == 22, "the operations")
    label = page.texts("#layer-verdict .strip-label")[0]
    assert label.startswith("22 operations recomputed from the weights; the largest difference")
    shapes = {row[1]: row[3] for row in page.rows("layer-operations")}
    assert (shapes["q turned"], shapes["k turned"], shapes["gate"]) == ("9 × 64", "3 × 64", "1536")
    assert all(row[4] in ("0", "–") or float(row[4]) < 1e-4 for row in page.rows("layer-operations"))
    eventually(lambda: "layer by hand = model" in " ".join(page.status), "the check")
    page.page.locator("#layer-strip canvas.heat-cells").focus()
    for _ in range(5):
        page.page.keyboard.press("ArrowRight")
    page.page.keyboard.press("Enter")
    eventually(lambda: page.station("layer") == "layer 5", "the other layer")
    eventually(lambda: page.note("layer").startswith("diff "), "its difference")
    page.page.click("#layer-operations tbody tr:nth-child(4)")
    eventually(lambda: page.caption("layer-first").startswith("value v: numbers 0 to 7 of 192"), "its first numbers")
    ours, model = page.rows("layer-first")
    assert ours[0] == "by hand"
    for left, right in zip(ours[1:], model[1:], strict=True):
        assert abs(float(left.replace("−", "-")) - float(right.replace("−", "-"))) < 1e-4
