"""Lanes of the page's events, and the server's threads that follow from them: a light event finds a thread at once."""

from typing import Any

import gradio as gr

#: Events that may wait for the model at once beside all the runs: one step, a look inside, a run that is refused.
BESIDE_RUNS = 8
#: Pages that may open at once, in lanes of their own: visitors who run for minutes keep nobody out.
OPENING_EVENTS = 6
#: Pages that may wait for a model to be loaded, in lanes of their own: they keep no conversation from the server.
LOADING_EVENTS = 4
#: Threads for what waits for no model.
LIGHT_THREADS = 8


def heavy(runs: int) -> dict[str, Any]:
    """Options of events that wait for the model: more than the `runs` of the engine, so that it refuses one too many
    and no queue holds it.
    """
    return {"concurrency_limit": runs + BESIDE_RUNS, "concurrency_id": "model"}


OPENING: dict[str, Any] = {"concurrency_limit": OPENING_EVENTS, "concurrency_id": "open"}
LOADING: dict[str, Any] = {"concurrency_limit": LOADING_EVENTS, "concurrency_id": "load"}


def threads(blocks: gr.Blocks) -> int:
    """Threads of a server on which all lanes of these blocks may be taken and light events still find one."""
    shared = {fn.concurrency_id: fn.concurrency_limit for fn in blocks.fns.values()}
    return LIGHT_THREADS + sum(limit for limit in shared.values() if isinstance(limit, int))
