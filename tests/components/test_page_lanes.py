"""Lanes of the page's events, over real HTTP: visitors who wait for the model keep no light event waiting."""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from statistics import median
from typing import Any
from urllib.request import Request, urlopen

import pytest

import app
from components import lanes
from components.compose import form_values
from components.desk import Desk
from components.page import Page
from engine.catalog import load_catalog
from engine.settings import Settings
from tests.components.test_desk import desk
from tests.patience import eventually

__all__ = ["desk"]  # a fixture

HEAVY_VISITORS = 45
MOST_RUNS = Settings().max_runs
HEAVY_EVENTS = lanes.heavy(MOST_RUNS)["concurrency_limit"]
SECONDS = 0.2


class Busy:
    """In the place of a run: it lasts until it is let go, and is refused where all `places` are taken."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.waiting = self.refused = 0
        self.places = HEAVY_VISITORS
        self._lock = threading.Lock()

    def __call__(self, *_: object) -> Iterator[None]:
        with self._lock:
            full = self.waiting >= self.places
            self.refused += full
            self.waiting += not full
        if full:
            return
        self.let_go.wait(60)
        yield


@pytest.fixture
def served(desk: Desk, monkeypatch) -> Iterator[tuple[Page, Busy]]:
    busy = Busy()
    monkeypatch.setattr(desk, "run", busy)
    page = Page(desk, desk.default, "Tiny", runs=MOST_RUNS)
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


def test_a_run_beyond_the_most_is_refused_at_once_and_waits_in_no_queue(served: tuple[Page, Busy], desk: Desk) -> None:
    page, busy = served
    busy.places = MOST_RUNS
    form = form_values(desk.default)
    streams = [
        join(page, "_run", f"run-{number}", [None, [form[name] for name in page.form]])
        for number in range(HEAVY_VISITORS)
    ]
    eventually(lambda: busy.waiting + busy.refused == HEAVY_VISITORS)
    assert (len(streams), busy.waiting) == (HEAVY_VISITORS, MOST_RUNS)


@pytest.mark.parametrize("max_runs", [1, 200])
def test_the_server_has_a_thread_for_every_lane_and_some_to_spare(
    max_runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = app.compose(Future(), app.hold(load_catalog(), Settings()), max_runs=max_runs)
    given: dict[str, Any] = {}
    monkeypatch.setattr(blocks, "launch", lambda **options: given.update(options))
    app.launch(blocks)
    limits = {fn.concurrency_id: fn.concurrency_limit for fn in blocks.fns.values()}
    assert limits["model"] > max_runs
    assert given["max_threads"] > limits["model"] + limits["open"] + limits["endpoints"]


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
