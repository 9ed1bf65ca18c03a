"""The endpoint under a flood, over real HTTP: a client that asks 51 times at once keeps no other client waiting."""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any
from urllib.request import Request, urlopen

import gradio as gr
import pytest
from starlette.requests import Request as HTTPRequest

import app
from components.clients import Clients, client_of
from engine.catalog import load_catalog
from engine.experiment import parse_experiment
from engine.refusals import Refused
from engine.settings import Settings

JOINS = 51
EXPERIMENT = {"version": 1, "model": "tiny", "prompt": "x"}


class SlowRuntime:
    """An engine whose runs last until they are let go; `under_way` counts them."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.under_way = 0
        self.started: list[str] = []

    facts = SimpleNamespace(model_id="tiny")

    def parse(self, source: dict[str, Any]) -> Any:
        return parse_experiment(source, models=["tiny"])

    def complete(self, experiment: Any) -> Any:
        self.started.append(experiment.prompt)
        self.under_way += 1
        if experiment.prompt == "flood":
            self.let_go.wait(60)
        self.under_way -= 1
        raise Refused(f"ran {experiment.prompt}")


@pytest.fixture
def served() -> Iterator[tuple[str, SlowRuntime]]:
    slow, runtime = SlowRuntime(), Future[Any]()
    runtime.set_result(slow)
    blocks = app.compose(runtime, app.hold(load_catalog(), Settings()))
    app.launch(blocks, quiet=True)
    yield blocks.local_url, slow
    slow.let_go.set()
    blocks.close()


def join(address: str, client: str, prompt: str) -> str:
    """Ask the endpoint to run a prompt; the id of the event that will answer."""
    body = json.dumps({"data": [EXPERIMENT | {"prompt": prompt}]}).encode()
    headers = {"content-type": "application/json", "x-forwarded-for": client}
    with urlopen(Request(f"{address}gradio_api/call/trace", data=body, headers=headers), timeout=30) as response:
        event: str = json.load(response)["event_id"]
    return event


def answer(address: str, event: str) -> str:
    with urlopen(f"{address}gradio_api/call/trace/{event}", timeout=60) as response:
        text: str = response.read().decode()
    return text


def test_a_client_that_joins_51_times_keeps_no_other_client_waiting(served: tuple[str, SlowRuntime]) -> None:
    address, slow = served
    flood = [join(address, "192.0.2.1", "flood") for _ in range(JOINS)]
    begun = time.monotonic()
    assert "ran second" in answer(address, join(address, "192.0.2.2", "second"))
    assert time.monotonic() - begun < 10
    assert slow.started.count("flood") == app.RUNS - 1 == slow.under_way
    slow.let_go.set()
    answers = [answer(address, event) for event in flood]
    assert sum("ran flood" in one for one in answers) == app.RUNS - 1
    assert sum("this address has 3 runs under way" in one for one in answers) == JOINS - app.RUNS + 1


def asked(*forwarded: str, peer: str = "198.51.100.7") -> gr.Request:
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    return gr.Request(HTTPRequest({"type": "http", "headers": headers, "client": (peer, 4000)}))


def test_a_client_cannot_name_itself_another_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPACE_ID", raising=False)
    assert client_of(asked("192.0.2.1")) == client_of(asked("192.0.2.2", "192.0.2.3")) == "198.51.100.7"


@pytest.mark.parametrize("forged", [("192.0.2.1, 203.0.113.5",), ("192.0.2.2,,203.0.113.5",), ("a", "203.0.113.5")])
def test_on_a_space_the_address_that_its_proxy_put_last_counts(
    forged: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPACE_ID", "owner/name")
    assert client_of(asked(*forged)) == "203.0.113.5"
    assert client_of(asked()) == "198.51.100.7"


def test_a_share_is_given_back_also_where_the_run_fails() -> None:
    clients = Clients(1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), clients.run("a"):
            1 / 0  # noqa: B018
    with clients.run("a"):
        with clients.run("b"):
            pass
        with pytest.raises(Refused, match="1 run under way"), clients.run("a"):
            pass
    assert not clients._under_way
