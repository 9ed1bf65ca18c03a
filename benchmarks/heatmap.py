"""A matrix of 1,000 × 1,000 in the browser: time from the click that asks for it to its picture, and bytes sent.

The real app runs in this process and a real browser clicks one head after the other of a layer whose queries and keys
are at hand, so that no forward of the whole context is in the way: what counts is one decode step for the head's row,
the matrix, its picture, the way to the browser and the drawing there.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from playwright.sync_api import Browser

from benchmarks.figures import Figure
from benchmarks.page import SETTLING, bytes_received
from benchmarks.prompts import prompt_of
from benchmarks.serving import served
from components.widgets import heatmap
from tests.e2e import browser as harness
from tests.e2e.visitor import Visitor
from tests.patience import eventually

#: Notes when the page was clicked last, and when the matrix was painted after it.
WATCH = """
() => {
  const cells = document.querySelector("#attention-matrix canvas.heat-cells");
  window.benchmark = { clicked: 0, drawn: 0 };
  addEventListener("click", () => (window.benchmark = { clicked: performance.now(), drawn: 0 }), true);
  new MutationObserver(() => requestAnimationFrame(() => setTimeout(() => {
    window.benchmark.drawn = performance.now();
  }))).observe(cells, { attributeFilter: ["width"] });
}
"""
DRAWN = "() => window.benchmark.drawn && window.benchmark.drawn - window.benchmark.clicked"


def measure(*, side: int = 1_000, heads: int = 8) -> list[Figure]:
    """Both figures, over `heads` clicks on heads in turn."""
    with served() as (url, runtime), harness.started() as browser:
        prompt = prompt_of(runtime._loaded.tokenizer, side)
        return _clicks(browser, url, prompt, side, heads)


@contextmanager
def values() -> Iterator[list[int]]:
    """Bytes of each heatmap's value that is made meanwhile, as JSON."""
    made: list[int] = []
    value = heatmap.value

    def noting(*matrix: Any, **options: Any) -> dict[str, Any]:
        found = value(*matrix, **options)
        made.append(len(json.dumps(found)))
        return found

    heatmap.value = noting
    try:
        yield made
    finally:
        heatmap.value = value


def _kb(sizes: list[float]) -> str:
    return f"{median(sizes):.0f} KB"


def _clicks(browser: Browser, url: str, prompt: str, side: int, heads: int) -> list[Figure]:
    with harness.opened(browser, url, width=1280, height=800, dark=False) as watched:
        visitor, page = Visitor(watched), watched.page
        visitor.set("use_template", False)
        visitor.type(prompt)
        visitor.press("step")
        eventually(lambda: visitor.tokens, "the token")
        visitor.open("attention")
        visitor.press("ask-attention_matrix")
        eventually(lambda: visitor.shows("#attention-matrix canvas.heat-cells"), "the matrix")
        page.wait_for_timeout(SETTLING)
        page.evaluate(WATCH)
        received = bytes_received(page.context.new_cdp_session(page))
        seconds, sent, own = [], [], []
        for click in range(heads):
            received.clear()
            # Never the selected head; the rows of the table are the heads.
            with values() as made:
                page.click(f"#attention-kinds tbody tr:nth-child({2 + click % 2})")
                page.wait_for_function(DRAWN)
            own.append(max(made) / 1e3)
            seconds.append(page.evaluate(DRAWN) / 1e3)
            page.wait_for_timeout(SETTLING)
            sent.append(sum(received) / 1e3)
        watched.check()
    note = f"slowest of {heads}: {max(seconds):.2f} s"
    name = f"matrix of {side:,} × {side:,}"
    return [
        Figure(f"{name}: click to picture", median(seconds), "s", 0.5, note=note),
        Figure(
            f"{name}: its value", median(own), "KB", 400, note=f"with labels; all that the click sends: {_kb(sent)}"
        ),
    ]
