"""The real app in this process, for measurements through a browser."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from app import compose, launch, load_runtime
from engine.catalog import load_catalog
from engine.runtime import Runtime
from engine.settings import Settings


@contextmanager
def served() -> Iterator[tuple[str, Runtime]]:
    """The page's address, and the runtime behind it on the default model in float32 on the CPU."""
    catalog = load_catalog()
    entry = catalog.find(catalog.default)
    runtime: Future[Runtime] = Future()
    blocks = compose(runtime, entry)
    launch(blocks, quiet=True)
    runtime.set_result(load_runtime(entry, catalog, Settings(device="cpu", dtype="float32")))
    try:
        yield str(blocks.local_url), runtime.result()
    finally:
        blocks.close()
