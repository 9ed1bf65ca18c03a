"""A link is copied with one click, and whoever opens it gets the same experiment, tokens and place."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from playwright.sync_api import Browser, Frame, Page

from tests.e2e.conftest import OpenApp, OpenPage
from tests.e2e.visitor import Visitor
from tests.patience import eventually

NO_CLIPBOARD = """
  Object.defineProperty(navigator, "clipboard", { value: { writeText: () => Promise.reject(new Error("refused")) } });
  document.execCommand = () => false;
"""


def said(page: Page | Frame) -> str:
    return page.locator("#link-said .share-said").inner_text()


def copied_link(page: Visitor) -> str:
    """Press Link; what the clipboard then holds, which is as long as the page says."""
    page.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.press("link")
    eventually(lambda: "copied" in said(page.page), "the link")
    address: str = page.page.evaluate("navigator.clipboard.readText()")
    assert said(page.page) == f"Link copied: {len(address)} characters"
    return address


def drawn(page: Page | Frame) -> list[str]:
    """Position and id of every sampled token."""
    titles: list[str] = page.locator("#timeline .t[data-state=sampled]").evaluate_all(
        "nodes => nodes.map((node) => node.title)"
    )
    return titles


def test_a_link_opened_by_another_visitor_gives_the_same_tokens_at_the_same_place(
    visit: OpenApp, browser_page: OpenPage, app: str
) -> None:
    first = visit()
    first.set("temperature", 1.2)
    first.set("seed", 7)
    first.set("max_new_tokens", 12)
    first.set("system_prompt", "Answer in one word.")
    first.run()
    first.open("draw")
    first.select(len(first.page.locator("#timeline .t").all()) - 9)
    address = copied_link(first)
    assert address.startswith(f"{app}?run=1.")
    assert len(address) < 200
    second = Visitor(browser_page(address), shows="#notice .fact")
    assert second.notice == (
        "This link holds an experiment: 2 messages, temperature 1.2, up to 12 tokens. "
        "Nothing has been run yet. Press Run."
    )
    assert second.messages == ["Answer in one word.", "What is the capital of France?"]
    assert second.tokens == []
    eventually(lambda: second.control("seed").input_value() == "7", "the form")
    assert second.control("temperature").input_value() == "1.2"
    assert second.control("system_prompt").input_value() == "Answer in one word."
    assert second.page.locator('#rail .st[data-id="draw"][aria-current]').count() == 1
    second.run()
    assert drawn(second.page) == drawn(first.page) != []
    eventually(lambda: second.cursor == first.cursor, "the cursor")
    assert second.notice == ""


def test_where_the_clipboard_is_refused_the_address_is_there_selected(chromium: Browser, app: str) -> None:
    page = chromium.new_page()
    page.add_init_script(NO_CLIPBOARD)
    page.goto(app)
    page.wait_for_selector("#timeline .t")
    page.click("#link")
    field = page.locator("#link-said input")
    field.wait_for()
    address = field.input_value()
    assert f"({len(address)} characters)" in said(page)
    assert page.evaluate("getSelection().toString()") == address
    assert field.evaluate("node => node === document.activeElement && node.selectionEnd === node.value.length")
    page.keyboard.press("Escape")
    assert not field.is_visible()
    page.close()


def test_a_link_works_in_a_frame_of_another_origin(chromium: Browser, visit: OpenApp) -> None:
    address = copied_link(visit())
    page = chromium.new_page()
    with framing(address) as outer:
        page.goto(outer)
        (frame,) = [one for one in page.frames if one.url == address]
        frame.wait_for_selector("#notice .fact")
        assert "This link holds an experiment" in frame.inner_text("#notice")
        frame.click("#run")
        eventually(lambda: frame.locator("#stop").is_disabled() and len(drawn(frame)) > 3, "the run")
        frame.click("#link")
        eventually(lambda: "characters" in said(frame), "a link")
    page.close()


def test_a_broken_link_leaves_the_page_as_it_always_opens(visit: OpenApp, browser_page: OpenPage) -> None:
    address = copied_link(visit())
    page = Visitor(browser_page(address[:-3] + "xxx"))
    assert "this link is damaged" in page.notice
    assert page.messages[-1] == "What is the capital of France?"
    page.step()
    assert page.tokens == ["The"]


@contextmanager
def framing(address: str) -> Iterator[str]:
    """A page of another origin with nothing but the app in a frame."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(f'<iframe src="{address}" width="1200" height="700"></iframe>'.encode())

        def log_message(self, *_: Any) -> None:
            """The test's own output is enough."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
