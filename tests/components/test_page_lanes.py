"""Lanes of the page's events, over real HTTP: visitors who wait for the model keep no light event waiting."""

import json
import threading
import time
from collections.abc import Iterator
from statistics import median
from typing import Any
from urllib.request import Request, urlopen

import pytest

import app
from components.compose import form_values
from components.desk import Desk
from components.page import HEAVY_EVENTS, Page
from tests.components.test_desk import desk

__all__ = ["desk"]  # a fixture

HEAVY_VISITORS = 45
SECONDS = 0.2


class Busy:
    """In the place of a run: it lasts until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.waiting = 0

    def __call__(self, *_: object) -> Iterator[None]:
        self.waiting += 1
        self.let_go.wait(60)
        yield


@pytest.fixture
def served(desk: Desk, monkeypatch) -> Iterator[tuple[Page, Busy]]:
    busy = Busy()
    monkeypatch.setattr(desk, "run", busy)
    page = Page(desk, desk.default, "Tiny")
    app.launch(page.blocks, quiet=True)
    yield page, busy
    busy.let_go.set()
    page.blocks.close()


def join(page: Page, handler: str, session: str, data: list[Any], event: dict[str, Any] | None = None) -> str:
    """Send an event of the page, as a browser does; the address where its answer is told."""
    (index,) = [number for number, fn in page.blocks.fns.items() if getattr(fn.fn, "__name__", "") == handler]
    sent = {"data": data, "fn_index": index, "session_hash": session, "event_data": event}
    request = Request(
        f"{page.blocks.local_url}gradio_api/queue/join",
        data=json.dumps(sent).encode(),
        headers={"content-type": "application/json"},
    )
    with urlopen(request, timeout=30) as response:
        assert response.status == 200
    return f"{page.blocks.local_url}gradio_api/queue/data?session_hash={session}"


def completed(address: str) -> dict[str, Any]:
    """The last message of a session's stream."""
    with urlopen(address, timeout=60) as stream:
        for line in stream:
            if line.startswith(b"data: "):
                message: dict[str, Any] = json.loads(line[6:])
                if message["msg"] == "process_completed":
                    return message
    raise AssertionError("the stream ended before the event")


def light_events(page: Page, who: str) -> list[float]:
    """Seconds that each of five visitors waits for a light event."""
    times = []
    for number in range(5):
        begun = time.monotonic()
        answer = completed(join(page, "_choose_station", f"{who}-{number}", [None], {"id": "lens"}))
        times.append(time.monotonic() - begun)
        assert answer["success"]
    return times


def test_45_heavy_visitors_keep_no_light_event_waiting(served: tuple[Page, Busy], desk: Desk) -> None:
    page, busy = served
    form = form_values(desk.default)
    alone = median(light_events(page, "alone"))
    for number in range(HEAVY_VISITORS):
        join(page, "_run", f"heavy-{number}", [None, [form[name] for name in page.form]])
    end = time.monotonic() + 30
    while busy.waiting < HEAVY_EVENTS and time.monotonic() < end:
        time.sleep(0.05)
    assert busy.waiting == HEAVY_EVENTS  # all lanes are taken, the others queue
    times = light_events(page, "light")
    assert busy.waiting == HEAVY_EVENTS
    busy.let_go.set()
    alone = max(alone, median(light_events(page, "after")))
    assert median(times) < max(SECONDS, 3 * alone)  # a machine that got busy meanwhile is slow for a lone visitor too
