"""The exported page in a browser without a network: 60 tokens of the embedded model, and a run of hostile tokens.

Expected numbers are what the live page's panels render from the record itself.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from playwright.sync_api import Browser, Page

from components.attention import panel as attention
from components.export.of_record import HEADS, html_page
from components.lens import panel as lens
from components.sampling import panel as sampling
from components.widgets.host import read
from engine.conversation import Conversation
from engine.experiment import Experiment
from engine.model import LoadedModel
from engine.probes.attention import attention as ask_attention
from engine.probes.lens import lens as ask_lens
from engine.record import Answered, Record, record_from_bytes, record_to_bytes
from tests.components.exported import HOSTILE, hostile_record, view_of
from tests.e2e.conftest import OpenApp
from tests.patience import eventually

TOKENS = 60
LIMIT = 3_000_000
SHOWN = [(24, 3), (24, 0), (5, 3)]
Offline = Callable[..., Page]


@pytest.fixture(scope="module")
def record(embedded: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> Record:
    """60 tokens, with the lens and the attention of three heads at each: one worker does the work of half a minute."""
    own = tmp_path_factory.getbasetemp()
    kept = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "sixty.record.json.gz"
    with FileLock(f"{kept}.lock"):
        if not kept.exists():
            kept.write_bytes(record_to_bytes(made(embedded)))
    return record_from_bytes(kept.read_bytes())


def made(embedded: LoadedModel) -> Record:
    experiment = Experiment.model_validate(
        {
            "version": 1,
            "model": embedded.facts.model_id,
            "messages": [{"role": "user", "content": "Tell me how a bicycle stays upright."}],
            "sampling": {"temperature": 0.7, "top_k": 20, "top_p": 0.9, "repetition_penalty": 1.1, "seed": 1},
            "stop": {"max_new_tokens": TOKENS},
        }
    )
    conversation = Conversation(embedded, experiment)
    while conversation.advance():
        pass
    answers = []
    for step in conversation.trace.steps(0):
        at: dict[str, Any] = {"turn": 0, "position": step.position - 1}
        answers.append(Answered("lens", at, ask_lens(conversation, **at)))
        for layer, head in SHOWN:
            asked = at | {"layer": layer, "head": head}
            answers.append(Answered("attention", asked, ask_attention(conversation, **asked)))
    return Record(conversation.trace, tuple(answers))


@pytest.fixture(scope="module")
def file(record: Record, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("page") / "run.html"
    path.write_text(html_page(record, "en"), encoding="utf-8")
    return path


@pytest.fixture
def offline(chromium: Browser) -> Iterator[Offline]:
    """Opens a file with the network off and requests refused; at the end none was made and the console is clean."""
    said: list[str] = []
    asked: list[str] = []
    contexts = []

    def open_file(path: Path, **options: Any) -> Page:
        context = chromium.new_context(
            **{"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"} | options
        )
        contexts.append(context)
        context.set_offline(True)
        page: Page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: asked.append(request.url))
        page.route("**/*", lambda route: route.continue_() if route.request.url == path.as_uri() else route.abort())
        page.goto(path.as_uri())
        page.wait_for_selector("#timeline .t")
        return page

    yield open_file
    assert [address for address in asked if not address.startswith(("file:", "data:"))] == []
    assert sum(address.startswith("file:") for address in asked) == len(contexts)
    for context in contexts:
        context.close()
    assert said == []


def rows(page: Page, table: str) -> list[list[str]]:
    """The texts of a table's cells."""
    script = "rows => rows.map((row) => Array.from(row.cells, (cell) => cell.textContent))"
    found: list[list[str]] = page.eval_on_selector_all(f"#{table} tbody tr", script)
    return found


def cells(value: dict[str, Any]) -> list[list[str]]:
    return [[cell if isinstance(cell, str) else cell[0] for cell in row] for row in read(value)["rows"]]


def station(page: Page, name: str) -> None:
    page.click(f'#rail .st[data-id="{name}"]')


def test_sixty_tokens_with_lens_and_attention_fit_in_three_megabytes(record: Record, file: Path) -> None:
    assert len(record.trace.steps(0)) == TOKENS
    assert len(SHOWN) == HEADS
    assert file.stat().st_size <= LIMIT


def test_it_shows_the_numbers_of_the_page(record: Record, file: Path, offline: Offline) -> None:
    page = offline(file)
    steps = record.trace.steps(0)
    for step in (steps[0], steps[17], steps[-1]):
        page.click(f'#timeline .t[data-position="{step.position}"]')
        view = view_of(record, position=step.position, layer=24, head=3)
        values = sampling.render(view)
        station(page, "draw")
        assert rows(page, "sampling-candidates") == cells(values[7])
        assert rows(page, "sampling-draw") == cells(values[2]["numbers"])
        heads = page.locator("#sampling-slope .annotation-text")
        names = {json.loads(values[1]["annotations"])[0]["marks"][0]["text"]}
        eventually(lambda heads=heads, names=names: names <= set(heads.all_text_contents()), "the processors")
        station(page, "lens")
        assert rows(page, "lens-rows") == cells(lens.render(view)[3])
        station(page, "attention")
        assert rows(page, "attention-moves") == cells(attention.render(view)[6])
        ids = page.eval_on_selector_all("#timeline .t", "chips => chips.map((chip) => chip.title)")
        assert len(ids) == len(record.trace.rendered(0).token_ids) + TOKENS  # type: ignore[union-attr]
        assert f"id {step.token_id} " in ids[step.position]
    page.select_option("#head", "2")
    view = view_of(record, position=steps[-1].position, layer=5, head=3)
    assert rows(page, "attention-moves") == cells(attention.render(view)[6])


def test_clicks_and_keys_move_the_cursor(record: Record, file: Path, offline: Offline) -> None:
    page = offline(file)
    first = record.trace.steps(0)[0].position

    def at() -> int:
        return int(page.get_attribute("#timeline .t[aria-current]", "data-position") or -1)

    assert at() == first
    page.keyboard.press("ArrowRight")
    assert at() == first + 1
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert at() == first - 1
    page.keyboard.press("8")
    assert page.get_attribute('#rail .st[aria-current="step"]', "data-id") == "text"
    page.keyboard.press(" ")
    assert page.text_content("#play") == "Pause ❚❚"
    eventually(lambda: at() >= first + 1, "playing")
    page.keyboard.press(" ")
    assert page.text_content("#play") == "Play ▶"
    page.focus("#slider")
    page.keyboard.press("End")
    assert at() == first + TOKENS - 1
    assert page.is_disabled("#next")
    station(page, "draw")
    page.click("#sampling-candidates tbody tr:nth-child(2)")
    assert "cannot be taken" in (page.text_content(".said") or "")
    assert at() == first + TOKENS - 1
    station(page, "attention")
    page.click("#attention-figures tbody tr:nth-child(2)")
    assert "not in this file" in (page.text_content(".said") or "")


def test_keys_scroll_the_box_that_has_the_focus(tmp_path: Path, offline: Offline) -> None:
    path = tmp_path / "hostile.html"
    path.write_text(html_page(hostile_record(), "en"), encoding="utf-8")
    page = offline(path, viewport={"width": 390, "height": 844})
    before = page.get_attribute("#timeline .t[aria-current]", "data-position")
    station(page, "draw")
    page.focus('#sampling-slope .plot[tabindex="0"]')
    for key in ("ArrowRight", "ArrowLeft", "ArrowRight", " "):
        page.keyboard.press(key)
    eventually(lambda: page.eval_on_selector("#sampling-slope .plot", "plot => plot.scrollLeft") > 0, "the scrolling")
    assert page.get_attribute("#timeline .t[aria-current]", "data-position") == before
    assert page.text_content("#play") == "Play ▶"


def test_every_control_has_a_name_and_the_switch_works(file: Path, offline: Offline) -> None:
    page = offline(file, color_scheme="dark", viewport={"width": 390, "height": 844})
    assert page.evaluate("document.body.classList.contains('dark')")
    page.click("#theme")
    assert not page.evaluate("document.body.classList.contains('dark')")
    assert page.evaluate("document.documentElement.lang") == "en"
    names = page.eval_on_selector_all("#rail .st", "all => all.map((one) => one.dataset.id)")
    for name in names:
        station(page, name)
        page.wait_for_timeout(50)
        assert page.evaluate("document.documentElement.scrollWidth") == 390, name
        tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
        roles = {"button", "slider", "combobox", "table", "navigation", "DisclosureTriangle"}
        unnamed = [
            node["role"]["value"]
            for node in tree
            if not node["ignored"] and node["role"]["value"] in roles and not node.get("name", {}).get("value")
        ]
        assert unnamed == [], name
        pictures = page.eval_on_selector_all("main [role=img]", "all => all.map((one) => one.ariaLabel)")
        assert all(pictures), name
        ids = page.eval_on_selector_all("[id]", "all => all.map((one) => one.id)")
        assert len(ids) == len(set(ids)), name


def test_hostile_tokens_do_nothing(tmp_path: Path, offline: Offline) -> None:
    path = tmp_path / "hostile.html"
    path.write_text(html_page(hostile_record(), "en"), encoding="utf-8")
    page = offline(path)
    chips = page.eval_on_selector_all("#timeline .t", "all => all.map((one) => one.textContent)")
    assert [chip.replace("␣", " ") for chip in chips[-len(HOSTILE) :]] == list(HOSTILE)
    for name in page.eval_on_selector_all("#rail .st", "all => all.map((one) => one.dataset.id)"):
        station(page, name)
        page.wait_for_timeout(100)
        assert page.evaluate("window.ran") is None
        assert page.locator(":is(header, main, footer) :is(img, script, iframe, a, object, link)").count() == 0
    eventually(lambda: page.evaluate("Boolean(window.Plotly)"), "the charts")


def test_a_cut_file_and_an_old_browser_are_told_so(file: Path, tmp_path: Path, chromium: Browser) -> None:
    text = file.read_text(encoding="utf-8")
    cut = tmp_path / "cut.html"
    middle = text.index('id="data"') + 100_000
    cut.write_text(text[:middle] + text[middle + 1000 :], encoding="utf-8")
    for path, script, said in (
        (cut, "", "damaged"),
        (file, "delete window.DecompressionStream", "DecompressionStream"),
    ):
        context = chromium.new_context()
        context.add_init_script(script)
        page = context.new_page()
        page.goto(path.as_uri())
        eventually(lambda page=page, said=said: said in (page.text_content("#wait") or ""), "the message")
        context.close()


def test_the_button_of_the_page_gives_the_file(visit: OpenApp, tmp_path: Path, offline: Offline) -> None:
    visitor = visit()
    visitor.step(2)
    visitor.open("attention")
    visitor.page.click("#record-menu > button")
    with visitor.page.expect_download() as coming:
        visitor.page.click("#record-page")
    path = tmp_path / "run.html"
    coming.value.save_as(path)
    assert coming.value.suggested_filename.endswith(".html")
    page = offline(path)
    chips = page.eval_on_selector_all("#timeline .t", "chips => chips.map((chip) => chip.textContent)")
    assert chips == visitor.texts("#timeline .t")
    last = visitor.page.get_attribute("#timeline .t[aria-current]", "data-position")
    page.click(f'#timeline .t[data-position="{last}"]')
    station(page, "attention")
    assert rows(page, "attention-moves") == rows(visitor.page, "attention-moves")
