"""No client may have all the lanes: who asks for more runs at once than its share is refused at once, not queued."""

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
    """Who asks: the address that a proxy in front of the app names, else that of the connection."""
    named = str(request.headers.get("x-forwarded-for", "")).partition(",")[0].strip()
    return named[:64] or (request.client.host if request.client else "")
