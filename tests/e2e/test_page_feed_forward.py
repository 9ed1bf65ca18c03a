"""Feed-forward, model and padding on the page: measured figures of the embedded model, and ways from view to view."""

import json

from tests.e2e.app_server import ROOT
from tests.e2e.conftest import OpenApp
from tests.patience import eventually

GOLDEN = json.loads((ROOT / "tests" / "golden" / "facts.json").read_text("utf-8"))["smollm2-135m-instruct-q4_1"]


def test_the_memory_the_parts_and_the_batch(visit: OpenApp) -> None:
    page = visit()
    page.set("use_template", False)
    page.type(GOLDEN["weights_embedded"]["prompt"])
    page.press("step")
    eventually(lambda: page.tokens == ["␣Paris"], "the token")

    page.open("model")
    eventually(lambda: page.rows("model-parts"), "the parts")
    assert page.rows("model-parts")[-1][3] == f"{GOLDEN['config']['parameters']:,}"
    hard = {row[0]: row[1] for row in page.rows("model-parameters")}
    assert (hard["layers"], hard["hidden size"], hard["cache a token"]) == ("30", "576", "45.00 KiB")
    assert page.station("model") == "134.5M"
    eventually(lambda: "gate" in "".join(page.texts("#model-where .treemaplayer text")), "the areas")

    page.open("feed_forward")
    eventually(lambda: len(page.rows("feed-forward-neurons")) == 12, "the neurons")
    assert page.texts("#feed-forward-notes .strip-label")[0].startswith("Layer 0: ")
    page.page.locator("#feed-forward-layers .numbers > summary").click()
    page.page.locator("#feed-forward-layers tbody tr").nth(27).click()
    eventually(lambda: page.rows("feed-forward-neurons")[0][0] == "1392", "layer 27")
    assert page.texts("#feed-forward-notes .strip-label")[0] == "Layer 27: 12 of 1,536 neurons carry half of the push"
    first = page.rows("feed-forward-neurons")[0]
    assert (first[1], first[3]) == ("+18.73", "+1.47")
    assert "␣back" in first[5]
    assert (page.station("feed_forward"), page.note("feed_forward")) == ("12 of 1,536", "half, layer 27")

    page.open("tensors")
    assert not page.shows("#tensors-padding-ways")
    page.press("ask-padding")
    eventually(lambda: page.shows("#tensors-padding-ways"), "the batch")
    ways = {row[0]: row[1:] for row in page.rows("tensors-padding-ways")}
    assert ways["filled on the left, nothing masked"][0] == "18.31"
    assert ways["filled on the right, read at the last column: a filling"][:2] == ["36.47", "."]
    assert ways["filled on the left, positions from the mask"][1:] == [",", ".927"]
    assert page.rows("tensors-padding")[8][4:] == ["Once", "1", "0"]
