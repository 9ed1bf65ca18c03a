"""A run saved from the page, opened again, walked through, and shown where torch is not installed at all."""

import json
from pathlib import Path

from tests.e2e.app_server import replaying
from tests.e2e.conftest import OpenApp, OpenPage
from tests.e2e.visitor import Visitor
from tests.patience import eventually


def save(visitor: Visitor, file: Path, steps: str = "") -> None:
    visitor.page.click("#record-menu > button")
    visitor.page.fill("#record-steps textarea, #record-steps input", steps)
    with visitor.page.expect_download() as download:
        visitor.press("record-save")
    assert download.value.suggested_filename.endswith(".record.json.gz")
    download.value.save_as(file)


def test_a_run_is_saved_opened_and_replayed_without_torch(
    visit: OpenApp, browser_page: OpenPage, tmp_path: Path
) -> None:
    visitor = visit()
    visitor.run()
    tokens = visitor.tokens
    visitor.open("lens")
    eventually(lambda: visitor.rows("lens-rows"), "the lens")
    rows = visitor.rows("lens-rows")
    file = tmp_path / "any name;$(x)<b>.gz"
    save(visitor, file)
    eventually(lambda: "The run was saved" in visitor.notice, "the good news")
    assert not visitor.shows("#run-live")

    visitor.page.set_input_files("#record-menu input[type=file]", file)
    eventually(lambda: "Recorded run, token" in visitor.notice, "the record")
    assert visitor.tokens == tokens
    visitor.press("back")
    eventually(lambda: visitor.tokens == tokens[:-1], "a token less")
    visitor.step()
    visitor.press("run-live")
    eventually(lambda: "Recorded run, token" not in visitor.notice and not visitor.tokens, "the run of its own")
    (tmp_path / "bad.gz").write_bytes(b"nonsense")
    visitor.page.set_input_files("#record-menu input[type=file]", tmp_path / "bad.gz")
    eventually(lambda: "could not be opened: this file is no record" in visitor.notice, "the refusal")

    with replaying(file) as address:
        reader = Visitor(browser_page(address, width=390))
        assert reader.tokens == tokens
        assert "No model is loaded" in reader.notice
        reader.open("lens")
        eventually(lambda: reader.rows("lens-rows") == rows, "the same lens")
        reader.press("back")
        eventually(lambda: len(reader.tokens) == len(tokens) - 1, "a token less")
        eventually(lambda: "does not hold the view" in " ".join(reader.texts("#lens-where .fact")), "the reason")
        reader.step()
        reader.type("hello")
        reader.press("step")
        eventually(lambda: "no model is loaded here" in reader.notice, "the refusal")
        width = reader.page.evaluate("document.documentElement.scrollWidth")
        assert width == 390, json.dumps(width)
