"""Compose and launch: flags → Settings → Runtime → page. The only module that knows both the engine and the page.

The page comes first and the model after it: importing torch and loading weights takes longer than everything else.
On a Space with ZeroGPU it is the other way round: at the launch the weights must be there to be taken over.
"""

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

import gradio as gr
from gradio.events import api
from starlette.middleware import Middleware

from components.body_limit import BodyLimit
from components.desk import Desk
from components.page import Page
from components.theme import theme
from components.widgets import host
from components.zero_gpu import lent
from engine.catalog import Catalog, Entry, ModelError, load_catalog
from engine.experiment import ExperimentError, parse_experiment
from engine.refusals import Refused
from engine.settings import Settings
from engine.trace_json import trace_to_json

if TYPE_CHECKING:
    from engine.bursts import Gpu
    from engine.runtime import Runtime

DEFAULT_EXPERIMENT = Path(__file__).resolve().parent / "assets" / "default_experiment.json"

#: Runs of the endpoints /trace and /probe at once, both together.
RUNS = 4
#: Values in one answer of /probe: the matrix of one head at 512 positions.
MAX_VALUES = 2**18 + 2**14


def compose(runtime: "Future[Runtime]", entry: Entry) -> gr.Blocks:
    """The page and the endpoint over a runtime that may still be on its way."""
    asked = json.loads(DEFAULT_EXPERIMENT.read_text("utf-8")) | {"model": entry.id}
    default = parse_experiment(asked, models=[entry.id])
    page = Page(Desk(runtime, default), default, entry.title)

    def trace(experiment: dict[str, Any]) -> dict[str, Any]:
        """Run an experiment, given as JSON, to its end; the answer is its trace as JSON."""
        try:
            return trace_to_json(runtime.result().complete(runtime.result().parse(experiment)))
        except (ExperimentError, Refused) as refused:
            raise gr.Error(str(refused), print_exception=False) from refused

    def probe(experiment: dict[str, Any], name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run an experiment, or take a trace with its ids; the answer is what the probe of that name shows, as JSON."""
        from engine.probe_json import answer_to_json

        try:
            asked, result = runtime.result().ask(experiment, name, arguments)
            return answer_to_json(name, entry.id, asked, result, max_values=MAX_VALUES)
        except (ExperimentError, Refused) as refused:
            raise gr.Error(str(refused), print_exception=False) from refused

    with page.blocks:
        for endpoint in (trace, probe):
            api(endpoint, api_name=endpoint.__name__, concurrency_limit=RUNS, concurrency_id="endpoints")
    blocks: gr.Blocks = page.blocks
    return blocks


def lender() -> "Gpu | None":
    """The decorator of a Space with ZeroGPU, where a GPU is lent to single calls; None anywhere else."""
    if os.environ.get("SPACES_ZERO_GPU", "").lower() not in ("1", "t", "true"):
        return None
    # It must come before whatever touches CUDA, on the thread that loads the model; it is part of the Space's image.
    import spaces

    return lent(spaces.GPU)


def load_runtime(entry: Entry, catalog: Catalog, settings: Settings, gpu: "Gpu | None" = None) -> "Runtime":
    """Load the model and the engine around it. Raises `ModelError`, which says what to do."""
    # torch and transformers take seconds to import: the page is served before.
    from engine.bursts import Bursts
    from engine.model import load
    from engine.runtime import Runtime

    loaded = load(entry, device=settings.device, dtype=settings.dtype)
    place = Bursts(loaded, settings.cache_bytes, gpu) if gpu else None
    return Runtime(loaded, catalog, settings, place=place)


def launch(blocks: gr.Blocks, **options: Any) -> None:
    """Serve the page without waiting, with everything switched off that a public page does not want."""
    blocks.queue(max_size=256, api_open=False)
    blocks.launch(
        theme=theme(),
        head=host.head(),
        ssr_mode=False,
        run_history=False,
        enable_monitoring=False,
        footer_links=[],
        state_session_capacity=200,
        max_file_size="1mb",
        app_kwargs={"middleware": [Middleware(BodyLimit)]},
        prevent_thread_lock=True,
        **options,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the app; 2 where the model cannot be had or a limit makes no sense."""
    parser = argparse.ArgumentParser(description="Decodescope: see how a language model makes a token.")
    Settings.add_flags(parser)
    parser.add_argument("--host", default=None, help="address to listen on (default: this computer only)")
    parser.add_argument("--port", type=int, default=None, help="port (default: the first free one from 7860)")
    parser.add_argument("--share", action="store_true", help="also make a public link through Gradio's tunnel")
    flags = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    catalog = load_catalog()
    runtime: Future[Runtime] = Future()
    try:
        settings = Settings.from_flags(flags)
        entry = catalog.find(settings.model or catalog.default)
        blocks = compose(runtime, entry)
        gpu = lender()
        if gpu:
            runtime.set_result(load_runtime(entry, catalog, settings, gpu))
        launch(blocks, server_name=flags.host, server_port=flags.port, share=flags.share)
        if not gpu:
            runtime.set_result(load_runtime(entry, catalog, settings))
    except (ModelError, ValueError, OSError) as error:
        if not runtime.done():
            runtime.set_exception(error)  # an open page that waits for the model would keep the program from ending
        print(f"error: {error}", file=sys.stderr)
        return 2
    blocks.block_thread()
    return 0


if __name__ == "__main__":
    sys.exit(main())
