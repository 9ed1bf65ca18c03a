"""No client may have all the lanes: who asks for more runs at once than its share is refused at once, not queued."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import gradio as gr

from engine.refusals import Refused
from engine.said import said


class Clients:
    """How many runs each client has under way."""

    def __init__(self, share: int) -> None:
        """`share` is the most that one client may have."""
        self._share = share
        self._under_way = Counter[str]()
        self._lock = Lock()

    @contextmanager
    def run(self, client: str) -> Iterator[None]:
        """A run of this client, for the time of the `with` block. Raises `Refused` beyond its share."""
        with self._lock:
            if self._under_way[client] >= self._share:
                raise Refused(said("client_busy", count=self._share))
            self._under_way[client] += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way[client] -= 1
                self._under_way += Counter()  # whoever has none leaves no trace


def client_of(request: gr.Request) -> str:
    """Who asks: the address of the connection.

    On a Space that is the proxy's, which puts the client's address last in a header that anyone may begin.
    """
    if os.environ.get("SPACE_ID"):
        named = ",".join(request.headers.getlist("x-forwarded-for")).rpartition(",")[2].strip()
        if named:
            return named[:64]
    return request.client.host if request.client else ""
