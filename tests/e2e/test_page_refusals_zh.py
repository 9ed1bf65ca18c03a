"""What is damaged or foreign is refused on a Chinese page in Chinese, with what to do, and the page goes on."""

import gzip
import re
from pathlib import Path

import pytest

from components.copy import words_in
from tests.e2e.conftest import OpenApp, OpenPage
from tests.e2e.visitor import Visitor
from tests.patience import eventually

RECORD = sorted((Path(__file__).parents[2] / "assets" / "traces").glob("*.gz"))[0].read_bytes()
REFUSALS = words_in("zh", "refusals")
FILES = {
    "no_record_or_damaged": ("notes.txt", b"nonsense"),  # of another kind: it is we who refuse it, not gradio
    "no_record": ("other.gz", gzip.compress(b'{"hello": 1}')),
    "file_breaks_off": ("half.record.json.gz", RECORD[: len(RECORD) // 2]),
}


def is_chinese(text: str) -> bool:
    """Nothing of it is English but the program's name."""
    return bool(re.search("[\u4e00-\u9fff]", text)) and not re.search("[a-z]{3}", text.replace("Decodescope", ""))


def goes_on(page: Visitor) -> None:
    """The page shows its prompt, and Step gives the next token and takes the notice away."""
    assert page.messages[-1] == "What is the capital of France?"
    page.step()
    assert page.tokens == ["The"]
    assert page.notice == ""


def test_files_that_are_no_record(visit: OpenApp, tmp_path: Path) -> None:
    page = visit(locale="zh-CN")
    page.page.click("#record-menu > button")
    for key, (name, data) in FILES.items():
        told = words_in("zh", "record").text("refused", reason=REFUSALS.text(key))
        file = tmp_path / name
        file.write_bytes(data)
        page.page.set_input_files("#record-menu input[type=file]", file)
        eventually(lambda told=told: page.notice == f"✗ {told}", key)  # type: ignore[misc]
        assert is_chinese(told)
        assert words_in("zh", "record").text("save") in told
        assert page.tokens == []
    goes_on(page)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1.AAAAAAAA", REFUSALS.text("link_damaged")),
        ("hello", REFUSALS.text("link_foreign")),
        ("2.AAAAAAAA", REFUSALS.text("link_newer", version=2, known=1)),
    ],
)
def test_links_that_cannot_be_opened(app: str, browser_page: OpenPage, text: str, told: str) -> None:
    page = Visitor(browser_page(f"{app}?run={text}", locale="zh-CN"), shows="#notice .fact")
    assert page.notice == f"✗ {told}"
    assert is_chinese(told)
    goes_on(page)
