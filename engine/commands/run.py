"""`python -m engine run experiment.json --out trace.json`: an experiment in, its trace out."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from engine.catalog import Catalog
from engine.commands.reading import FAILED_RUN, INTERRUPTED, read, report, write_out
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
    if flags.out is not None:  # a file that cannot be written is told before the work and not after it
        with flags.out.open("ab"):
            pass
    trace = run(load(experiment.model, flags, catalog), experiment).trace
    write_out(trace_to_json(trace), flags.out)
    return code(trace)


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


def run(loaded: "LoadedModel", experiment: Experiment) -> "Conversation":
    """Run the experiment to its end, or to Ctrl-C, and tell of it."""
    from engine.conversation import Conversation

    conversation = Conversation(loaded, experiment)
    try:
        while events := conversation.advance():
            for event in events:
                report(event)
    except KeyboardInterrupt:
        conversation.cancel()
        report(conversation.trace.events[-1])
    return conversation


def code(trace: Trace) -> int:
    """The exit code of a run that ended so."""
    last = trace.events[-1] if trace.events else None
    if not isinstance(last, Stopped):
        return 0
    return {"error": FAILED_RUN, "cancelled": INTERRUPTED}.get(last.reason, 0)
