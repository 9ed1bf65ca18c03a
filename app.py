"""Compose and launch: flags → Settings → Runtime → page. Beside `lesson.py` the only module that knows both sides.

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

from components import lanes
from components.body_limit import BodyLimit
from components.clients import Clients, client_of
from components.copy import DEFAULT, LANGUAGES
from components.desk import Desk
from components.export.of_record import html_page
from components.lesson_player.library import Library, read_library
from components.page import Page
from components.theme import theme
from components.widgets import host
from components.zero_gpu import lent
from engine.catalog import Catalog, Entry, ModelError, load_catalog
from engine.experiment import ExperimentError, parse_experiment
from engine.loading.added import with_added
from engine.loading.progress import Progress, Report, to_stderr
from engine.many_runtimes import ManyRuntimes, model_of
from engine.models_at_hand import ModelsAtHand
from engine.playback import WithoutModel
from engine.record import MAX_FILE_BYTES, Record, record_from_bytes
from engine.refusals import Refused
from engine.settings import Settings
from engine.trace_json import trace_to_json

if TYPE_CHECKING:
    from engine.bursts import Gpu
    from engine.runtime import Runtime

DEFAULT_EXPERIMENT = Path(__file__).resolve().parent / "assets" / "default_experiment.json"

#: Runs of the endpoints /trace and /probe at once, both together.
RUNS = 4
#: Pages whose state is kept beside those that have a session: they are told what became of theirs.
SPARE_PAGES = 100
#: Values in one answer of /probe: the matrix of one head at 512 positions.
MAX_VALUES = 2**18 + 2**14


def compose(
    runtime: "Future[Any]",
    hand: ModelsAtHand | None = None,
    *,
    record: Record | None = None,
    library: Library | None = None,
    max_runs: int = Settings.max_runs,
) -> gr.Blocks:
    """The page and the endpoints over a runtime that may still be on its way.

    Either `hand` holds the models, or there is none and a new page shows the record. `max_runs` are those of a model.
    """
    if hand is None:
        assert record is not None
        default, offered = record.trace.experiment, [(record.facts.title, record.facts.model_id)]
    else:
        asked = json.loads(DEFAULT_EXPERIMENT.read_text("utf-8")) | {"model": hand.started}
        default = parse_experiment(asked, models=[hand.started])
        offered = [(hand.catalog.find(name).title, name) for name in hand.offered]
    desk = Desk(runtime, default, hand, record)
    desk.library = library or desk.library
    page = Page(desk, default, offered[0][0], offered, runs=max_runs * len(offered))
    clients = Clients(RUNS - 1)  # one lane is left for everyone else

    def trace(experiment: dict[str, Any], request: gr.Request) -> dict[str, Any]:
        """Run an experiment, given as JSON, to its end; the answer is its trace as JSON."""
        try:
            with clients.run(client_of(request)):
                return trace_to_json(runtime.result().complete(runtime.result().parse(experiment)))
        except (ExperimentError, Refused) as refused:
            raise gr.Error(str(refused), print_exception=False) from refused

    def probe(experiment: dict[str, Any], name: str, arguments: dict[str, Any], request: gr.Request) -> dict[str, Any]:
        """Run an experiment, or take a trace with its ids; the answer is what the probe of that name shows, as JSON."""
        from engine.probe_json import answer_to_json

        try:
            with clients.run(client_of(request)):
                asked, result = runtime.result().ask(experiment, name, arguments)
                return answer_to_json(name, model_of(experiment), asked, result, max_values=MAX_VALUES)
        except (ExperimentError, Refused) as refused:
            raise gr.Error(str(refused), print_exception=False) from refused

    with page.blocks:
        for endpoint in (trace, probe):
            api(endpoint, api_name=endpoint.__name__, concurrency_limit=RUNS, concurrency_id="endpoints")
    blocks: gr.Blocks = page.blocks
    return blocks


def read_record(file: Path) -> Record:
    """The record in a file. Raises OSError, and `ExperimentError` for a file that is no record."""
    with file.open("rb") as opened:
        return record_from_bytes(opened.read(MAX_FILE_BYTES + 1))


def export(file: Path, html: Path, language: str) -> None:
    """Write a record as one HTML file. Raises as `read_record` does, and `Refused` as `html_page` does."""
    html.write_text(html_page(read_record(file), language), encoding="utf-8", newline="\n")


def replay(file: Path, catalog: Catalog, runtime: "Future[Any]", library: Library) -> gr.Blocks:
    """The page over a record, with no model. Raises as `read_record` does."""
    record = read_record(file)
    runtime.set_result(WithoutModel(record.facts, catalog))
    return compose(runtime, record=record, library=library)


def hold(catalog: Catalog, settings: Settings, gpu: "Gpu | None" = None) -> ModelsAtHand:
    """The models that the settings name, none of them loaded yet. Raises `ModelError` for one that cannot be."""
    catalog = with_added(catalog, settings.add_model)
    added = catalog.loadable_ids[len(load_catalog().loadable_ids) :]
    started, *rest = (catalog.find(name) for name in (settings.model or catalog.default, *(settings.models or added)))
    for entry in (started, *rest):
        if not entry.loadable:
            raise ModelError(f"{entry.title} is known by its shape only; it cannot be loaded")

    def load(entry: Entry, report: Report) -> "Runtime":
        return load_runtime(entry, catalog, settings, report, gpu)

    return ModelsAtHand(catalog, started=started.id, offered=[entry.id for entry in rest], loader=load)


def lender() -> "Gpu | None":
    """The decorator of a Space with ZeroGPU, where a GPU is lent to single calls; None anywhere else."""
    if os.environ.get("SPACES_ZERO_GPU", "").lower() not in ("1", "t", "true"):
        return None
    # It must come before whatever touches CUDA, on the thread that loads the model; it is part of the Space's image.
    import spaces

    return lent(spaces.GPU)


def load_runtime(
    entry: Entry, catalog: Catalog, settings: Settings, report: Report, gpu: "Gpu | None" = None
) -> "Runtime":
    """Load the model and the engine around it. Raises `ModelError`, which says what to do."""
    # torch and transformers take seconds to import: the page is served before.
    from engine.bursts import Bursts
    from engine.model import load
    from engine.runtime import Runtime

    terminal = to_stderr(entry.title)

    def both(progress: Progress) -> None:
        terminal(progress)
        report(progress)

    loaded = load(
        entry,
        device=settings.device,
        dtype=settings.dtype,
        quantize=settings.quantize,
        offload=settings.offload,
        report=both,
    )
    place = Bursts(loaded, settings.cache_bytes, gpu) if gpu else None
    return Runtime(loaded, catalog, settings, place=place)


def launch(blocks: gr.Blocks, *, sessions: int = Settings.max_sessions, **options: Any) -> None:
    """Serve the page without waiting, with everything switched off that a public page does not want.

    `sessions` is how many there may be, over all models.
    """
    blocks.queue(max_size=256, api_open=False)
    blocks.launch(
        theme=theme(),
        head=host.head(),
        ssr_mode=False,
        run_history=False,
        enable_monitoring=False,
        footer_links=[],
        max_threads=lanes.threads(blocks),
        state_session_capacity=sessions + SPARE_PAGES,
        max_file_size=MAX_FILE_BYTES,
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
    parser.add_argument("--replay", type=Path, metavar="FILE", help="show a recorded run; no model is loaded")
    parser.add_argument("--export", type=Path, metavar="FILE", help="write a recorded run as one HTML file, and end")
    parser.add_argument("--html", type=Path, metavar="FILE", help="where --export writes it")
    parser.add_argument("--language", choices=list(LANGUAGES), default=DEFAULT, help="of what --export writes")
    parser.add_argument(
        "--lessons",
        type=Path,
        metavar="FOLDER",
        default=os.environ.get("DECODESCOPE_LESSONS", "").strip() or None,
        help="lessons of your own beside the program's, as FOLDER/en/name.yaml (also DECODESCOPE_LESSONS)",
    )
    flags = parser.parse_args(arguments)
    if (flags.export is None) != (flags.html is None):
        parser.error("--export and --html belong together")
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    runtime: Future[ManyRuntimes] = Future()
    try:
        if flags.export:
            export(flags.export, flags.html, flags.language)
            return 0
        catalog = load_catalog()
        library = read_library(catalog.loadable_ids, flags.lessons)
        where = {"server_name": flags.host, "server_port": flags.port, "share": flags.share}
        if flags.replay:
            blocks = replay(flags.replay, catalog, runtime, library)
            launch(blocks, **where)
        else:
            gpu = lender()
            settings = Settings.from_flags(flags)
            hand = hold(catalog, settings, gpu)
            blocks = compose(runtime, hand, library=library, max_runs=settings.max_runs)
            if gpu:
                hand.load_now(hand.started)
            launch(blocks, sessions=settings.max_sessions * len(hand.offered), **where)
            hand.begin(hand.started).ready.result()
            runtime.set_result(ManyRuntimes(hand))
    except (ModelError, Refused, ValueError, OSError) as error:
        if not runtime.done():
            runtime.set_exception(error)  # an open page that waits for the model would keep the program from ending
        print(f"error: {error}", file=sys.stderr)
        return 2
    blocks.block_thread()
    if not flags.replay:
        runtime.result().shut_down()  # a forward under way ends by itself, not with the interpreter
    return 0


if __name__ == "__main__":
    sys.exit(main())
