"""The real app in this process, for measurements through a browser."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from app import compose, hold, launch
from engine.catalog import load_catalog
from engine.many_runtimes import ManyRuntimes
from engine.runtime import Runtime
from engine.settings import Settings


@contextmanager
def served() -> Iterator[tuple[str, Runtime]]:
    """The page's address, and the runtime behind it on the default model in float32 on the CPU."""
    hand = hold(load_catalog(), Settings(device="cpu", dtype="float32"))
    many: Future[ManyRuntimes] = Future()
    blocks = compose(many, hand)
    launch(blocks, quiet=True)
    runtime = hand.begin(hand.started).runtime
    many.set_result(ManyRuntimes(hand))
    try:
        yield str(blocks.local_url), runtime
    finally:
        blocks.close()
