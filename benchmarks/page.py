"""What the page adds to a step: time from the step's end in the engine to the token in the browser, and bytes sent.

The real app runs in this process, so that the moment a step ends can be noted; a real browser shows it and notes when
each chip of the timeline is there. Meanwhile the model goes on, as it does for a person who presses Run. The first
token is made by Step and not counted: the browser loads the chart library at the first chart, once.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median, quantiles
from typing import Any

from playwright.sync_api import Browser, CDPSession

from benchmarks.figures import Figure
from benchmarks.serving import served
from engine.conversation import Conversation
from engine.trace import Event, Stepped
from tests.e2e import browser as harness

QUESTION = "Explain in a few sentences how a rainbow forms."

#: By panel: the station of the rail that opens it, and what is in the page once the panel shows a step.
PANELS = {
    "sampling": ("processors", "#sampling-slope .main-svg"),
    "prompt": ("prompt", '#timeline [data-state="sampled"]'),
}

SETTLING = 1_000  # milliseconds after which nothing is under way any more

#: Notes by position when a chip is in the page, and when the frame with it was drawn.
WATCH = """
() => {
  const strip = document.querySelector("#timeline");
  const now = () => performance.timeOrigin + performance.now();
  const count = () => strip.querySelectorAll("[data-position]").length;
  let known = count();
  window.benchmark = { shown: {}, drawn: {} };
  new MutationObserver(() => {
    const fresh = [];
    for (let position = known; position < count(); position += 1) fresh.push(position);
    known = count();
    for (const position of fresh) window.benchmark.shown[position] = now();
    requestAnimationFrame(() => setTimeout(() => {
      for (const position of fresh) window.benchmark.drawn[position] = now();
    }));
  }).observe(strip, { childList: true, subtree: true });
}
"""


@contextmanager
def step_ends() -> Iterator[dict[int, float]]:
    """By position: when the engine finished the newest step that chose a token there (seconds since the epoch)."""
    ends: dict[int, float] = {}
    advance = Conversation.advance

    def noting(self: Conversation) -> tuple[Event, ...]:
        events = advance(self)
        now = time.time()
        ends.update({event.position: now for event in events if isinstance(event, Stepped)})
        return events

    Conversation.advance = noting  # type: ignore[method-assign]
    try:
        yield ends
    finally:
        Conversation.advance = advance  # type: ignore[method-assign]


def bytes_received(session: CDPSession) -> list[int]:
    """A list that grows by the bytes of each piece of a response that the browser receives, as they came."""
    received: list[int] = []
    session.send("Network.enable")

    def note(event: dict[str, Any]) -> None:
        # The encoded length is 0 where the browser does not know it, as in a stream that is still open.
        received.append(event["encodedDataLength"] or event["dataLength"])

    session.on("Network.dataReceived", note)
    return received


def measure(*, panels: tuple[str, ...] = tuple(PANELS), new_tokens: int = 48) -> list[Figure]:
    """Both figures for each panel in sight, over one run of `new_tokens` tokens (fewer where the answer ends early)."""
    with served() as (url, _), harness.started() as browser:
        return [figure for panel in panels for figure in _measure_panel(browser, url, panel, new_tokens)]


def _measure_panel(browser: Browser, url: str, panel: str, new_tokens: int) -> list[Figure]:
    with step_ends() as ends, harness.opened(browser, url, width=1280, height=800, dark=False) as watched:
        page = watched.page
        station, settled = PANELS[panel]
        page.wait_for_selector("#timeline [data-position]")
        page.click(f'#rail [data-id="{station}"]')
        page.wait_for_selector(f'#rail [data-id="{station}"][aria-current]')
        page.fill("#set-max_new_tokens input", str(new_tokens + 1))
        page.fill("#message textarea", QUESTION)
        page.click("#step")
        page.wait_for_selector(settled)
        page.wait_for_timeout(SETTLING)
        page.evaluate(WATCH)
        received = bytes_received(page.context.new_cdp_session(page))
        ends.clear()
        page.click("#run")
        page.wait_for_selector("#stop:enabled")
        page.wait_for_selector("#stop:disabled", timeout=120_000)
        page.wait_for_timeout(SETTLING)
        noted = page.evaluate("() => window.benchmark")
        watched.check()
    shown = _delays(noted["shown"], ends)
    drawn = _delays(noted["drawn"], ends)
    return [
        Figure(
            f"page: step's end to token in the page, {panel} open",
            median(shown),
            "ms",
            30,
            note=f"95 % within {_p95(shown):.0f} ms; drawn on screen {median(drawn):.0f} ms; {len(shown)} tokens",
        ),
        Figure(f"page: sent a step, {panel} open", sum(received) / len(ends) / 1e3, "KB", 40),
    ]


def _delays(noted: dict[str, float], ends: dict[int, float]) -> list[float]:
    """Milliseconds from a step's end to its chip, by position."""
    return [noted[str(position)] - end * 1e3 for position, end in ends.items() if str(position) in noted]


def _p95(values: list[float]) -> float:
    return quantiles(values, n=20)[-1]
