"""`python -m engine probe NAME experiment.json --step S`: what a probe shows of a run, as JSON."""

import argparse
from typing import Any

from engine.catalog import Catalog
from engine.commands.reading import INTERRUPTED, read, write_out
from engine.commands.run import code, load, run
from engine.experiment import ExperimentError, decoded, parse_experiment
from engine.given_trace import is_trace, parse_trace
from engine.settings import LOADING, Settings
from engine.tools.registry import TOOLS

#: A trace takes about 12 KB a step.
MAX_TRACE_BYTES = 64_000_000
#: Values of one answer: the matrix of one head at 1,024 positions, and some more.
MAX_VALUES = 2_000_000

PLACES = ("turn", "step", "position", "layer", "head")


def add(parser: argparse.ArgumentParser, catalog: Catalog) -> None:
    """Add the flags of the command."""
    parser.add_argument("name", metavar="NAME", help="the probe: attention, lens, residual, …; a wrong name lists all")
    parser.add_argument("source", help="experiment to run, or trace whose ids are fed, as JSON; - reads standard input")
    parser.add_argument("--turn", type=int, help="the turn (default: the newest)")
    parser.add_argument("--step", type=int, help="the step of the turn: the position that was fed before it")
    parser.add_argument("--position", type=int, help="the position (default: the last one fed)")
    parser.add_argument("--layer", type=int)
    parser.add_argument("--head", type=int)
    parser.add_argument(
        "--set", action="append", default=[], metavar="ARGUMENT=VALUE", help="another argument of the probe, as JSON"
    )
    parser.add_argument("--model", choices=catalog.loadable_ids, help="use this model, not the one that is named")
    Settings.add_flags(parser, *LOADING)


def main(flags: argparse.Namespace, catalog: Catalog) -> int:
    """Ask one probe; the exit code: 0, 1 when the run ended in an error, 130 on Ctrl-C."""
    data = decoded(read(flags.source, MAX_TRACE_BYTES, "a trace"))
    recorded = is_trace(data)
    models = catalog.loadable_ids
    trace = parse_trace(data, models=models) if recorded else None
    experiment = trace.experiment if trace else parse_experiment(data, models=models, tools=TOOLS)
    if flags.model:
        experiment = experiment.model_copy(update={"model": flags.model})
    # torch takes seconds to import: a bad experiment is told before.
    from engine.asking import answer, check
    from engine.given_trace import replayed
    from engine.probe_json import answer_to_json
    from engine.probes.table import PROBES

    arguments = _arguments(flags, PROBES)
    check(PROBES, flags.name, arguments, catalog.find(experiment.model))
    loaded = load(experiment.model, flags, catalog)
    check(PROBES, flags.name, arguments, loaded.facts)
    if trace:
        conversation = replayed(loaded, trace)
    else:
        conversation, interrupted = run(loaded, experiment)
        if interrupted:
            return INTERRUPTED
        if ended := code(conversation.trace):
            return ended
    asked, result = answer(PROBES, conversation, flags.name, arguments)
    write_out(answer_to_json(flags.name, loaded.facts.model_id, asked, result, max_values=MAX_VALUES))
    return 0


def _arguments(flags: argparse.Namespace, probes: Any) -> dict[str, Any]:
    """The arguments that the flags name; those of `--set` are read as the probe wants them."""
    from engine.asking import read_argument

    arguments = {name: getattr(flags, name) for name in PLACES if getattr(flags, name) is not None}
    for item in flags.set:
        name, equals, text = item.partition("=")
        if not equals:
            raise ExperimentError("--set", f"ARGUMENT=VALUE is wanted, got {item[:60]!r}")
        arguments[name] = read_argument(probes[flags.name], name, text) if flags.name in probes else text
    return arguments
