"""The real app in a process of its own: `python app.py` on a free port, ended when the tests are through."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.error import URLError
from urllib.request import Request, urlopen

ROOT = Path(__file__).parents[2]
START_SECONDS = 300  # on a machine that has never run it the model is converted first
WITHOUT_TORCH = """
import sys
sys.modules.update(dict.fromkeys(("torch", "transformers", "tokenizers", "safetensors")))
import app
sys.exit(app.main(sys.argv[1:]))
"""
ONE_CORE = {"OMP_NUM_THREADS": "1"}  # the browser needs the other


@contextmanager
def started() -> Iterator[str]:
    """The app's address. At the end the app must have logged no error of its own."""
    with _served([sys.executable, "app.py"]) as address:
        call(address, {}, timeout=START_SECONDS)  # answers once the model is loaded
        yield address


@contextmanager
def replaying(record: Path) -> Iterator[str]:
    """The address of an app that shows a record, in a process where the libraries of models cannot be imported."""
    with _served([sys.executable, "-c", WITHOUT_TORCH, "--replay", str(record)]) as address:
        yield address


@contextmanager
def _served(command: list[str]) -> Iterator[str]:
    port = _free_port()
    address = f"http://127.0.0.1:{port}/"
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
        app = subprocess.Popen(
            [*command, "--port", str(port)],
            cwd=ROOT,
            env=os.environ | ONE_CORE,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            _await(address, app, log)
            yield address
        finally:
            app.terminate()
            app.wait(30)
        assert "Traceback" not in _read(log), _read(log)


def call(address: str, experiment: dict[str, Any], *, timeout: float = 60) -> tuple[str, Any]:
    """The endpoint /trace by plain HTTP: the name of its last event, "complete" or "error", and the event's data."""
    request = Request(
        f"{address}gradio_api/call/trace",
        data=json.dumps({"data": [experiment]}).encode(),
        headers={"content-type": "application/json"},
    )
    with urlopen(request, timeout=timeout) as response:
        event_id = json.load(response)["event_id"]
    with urlopen(f"{address}gradio_api/call/trace/{event_id}", timeout=timeout) as response:
        name, data = response.read().decode().strip().split("\n")[-2:]
    return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _await(address: str, app: subprocess.Popen[bytes], log: IO[str]) -> None:
    end = time.monotonic() + START_SECONDS
    while app.poll() is None and time.monotonic() < end:
        try:
            with urlopen(address, timeout=10):
                return
        except (URLError, TimeoutError):
            time.sleep(0.2)
    raise AssertionError(f"the app did not start:\n{_read(log)}")


def _read(log: IO[str]) -> str:
    log.seek(0)
    return log.read()
