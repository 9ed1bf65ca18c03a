"""`python -m engine run experiment.json --out trace.json`: an experiment in, its trace out."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from engine.catalog import Catalog
from engine.commands.reading import FAILED_RUN, INTERRUPTED, promised, read, report, write_out
from engine.experiment import MAX_JSON_BYTES, Experiment, parse_experiment
from engine.loading.progress import to_stderr
from engine.settings import LOADING, Settings
from engine.tools.registry import TOOLS
from engine.trace import Stopped, Trace
from engine.trace_json import trace_to_json

if TYPE_CHECKING:
    from engine.conversation import Conversation
    from engine.model import LoadedModel


def add(parser: argparse.ArgumentParser, catalog: Catalog) -> None:
    """Add the flags of the command."""
    parser.add_argument("experiment", help="experiment as JSON; - reads standard input")
    parser.add_argument("--out", type=Path, help="file for the trace as JSON (default: standard output)")
    parser.add_argument("--model", choices=catalog.loadable_ids, help="run on this model, not on the one that is named")
    Settings.add_flags(parser, *LOADING)


def main(flags: argparse.Namespace, catalog: Catalog) -> int:
    """Run one experiment; the exit code: 0, 1 when the run ended in an error, 130 on Ctrl-C."""
    data = read(flags.experiment, MAX_JSON_BYTES, "an experiment")
    experiment = parse_experiment(data, models=catalog.loadable_ids, tools=TOOLS)
    if flags.model:
        experiment = experiment.model_copy(update={"model": flags.model})
    with promised(flags.out):
        conversation, interrupted = run(load(experiment.model, flags, catalog), experiment)
        write_out(trace_to_json(conversation.trace), flags.out)
    return INTERRUPTED if interrupted else code(conversation.trace)


def load(model: str, flags: argparse.Namespace, catalog: Catalog) -> "LoadedModel":
    """The model of that id, on the device and in the numbers that the flags name. Raises `ModelError`."""
    # torch takes seconds to import: a bad experiment is told before.
    import engine.model

    entry = catalog.find(model)
    print(f"loading {entry.title}", file=sys.stderr)
    asked = Settings.from_flags(flags)
    return engine.model.load(
        entry,
        device=asked.device,
        dtype=asked.dtype,
        quantize=asked.quantize,
        offload=asked.offload,
        report=to_stderr(entry.title),
    )


def run(loaded: "LoadedModel", experiment: Experiment) -> tuple["Conversation", bool]:
    """Run the experiment to its end, or to Ctrl-C, and tell of it; with True where it was interrupted."""
    from engine.conversation import Conversation

    conversation = Conversation(loaded, experiment)
    try:
        while events := conversation.advance():
            for event in events:
                report(event)
    except KeyboardInterrupt:
        # A forward that was broken off has left the cache, and the turn, between two tokens.
        conversation = Conversation.resumed(loaded, conversation.trace)
        told = len(conversation.trace.events)
        conversation.cancel()
        for event in conversation.trace.events[told:]:
            report(event)
        print("interrupted", file=sys.stderr)
        return conversation, True
    return conversation, False


def code(trace: Trace) -> int:
    """The exit code of a run that ended by itself."""
    last = trace.events[-1] if trace.events else None
    return FAILED_RUN if isinstance(last, Stopped) and last.reason == "error" else 0
