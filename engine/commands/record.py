"""`python -m engine record experiment.json --out run.record.json.gz`: a run and what probes gave of it, in one file."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from engine.answers.refusal import Refusal
from engine.catalog import Catalog
from engine.commands.reading import INTERRUPTED, promised, read
from engine.commands.run import code, load, run
from engine.experiment import MAX_JSON_BYTES, ExperimentError, parse_experiment
from engine.questions import OF_A_STEP, USUAL, Wanted, check_probes, questions, steps_named, wanted
from engine.record import MAX_FILE_BYTES, Answered, Record, record_to_bytes
from engine.refusals import Refused
from engine.settings import LOADING, Settings
from engine.tools.registry import TOOLS

if TYPE_CHECKING:
    from engine.conversation import Conversation


def add(parser: argparse.ArgumentParser, catalog: Catalog) -> None:
    """Add the flags of the command."""
    parser.add_argument("experiment", help="experiment as JSON; - reads standard input")
    parser.add_argument("--out", type=Path, required=True, help="file for the record, named like run.record.json.gz")
    steps = parser.add_mutually_exclusive_group()
    steps.add_argument("--steps", metavar="3,5", help="keep the inside of these steps of the newest turn")
    steps.add_argument("--all-steps", action="store_true", help="keep the inside of every step of the newest turn")
    parser.add_argument(
        "--probes", default=",".join(USUAL), help=f"what to keep, of {', '.join(OF_A_STEP)} (default: %(default)s)"
    )
    parser.add_argument("--layer", type=int, default=0, help="keep all heads of this layer (default: 0)")
    parser.add_argument("--head", type=int, default=0, help="keep this head of all layers (default: 0)")
    parser.add_argument("--model", choices=catalog.loadable_ids, help="run on this model, not on the one that is named")
    Settings.add_flags(parser, *LOADING)


def main(flags: argparse.Namespace, catalog: Catalog) -> int:
    """Run one experiment and keep it; the exit code: 0, 1 when the run ended in an error, 130 on Ctrl-C."""
    data = read(flags.experiment, MAX_JSON_BYTES, "an experiment")
    experiment = parse_experiment(data, models=catalog.loadable_ids, tools=TOOLS)
    if flags.model:
        experiment = experiment.model_copy(update={"model": flags.model})
    entry = catalog.find(experiment.model)
    for name, count in (("layer", entry.layers), ("head", entry.heads)):
        if not 0 <= getattr(flags, name) < count:
            raise ExperimentError(name, f"this model has {name}s 0 to {count - 1}")
    try:
        steps = None if flags.all_steps else steps_named(flags.steps or "")
    except ValueError as error:
        raise ExperimentError("--steps", str(error)) from None
    most = experiment.stop.max_new_tokens
    for step in steps or ():
        if step >= most:
            raise ExperimentError("steps", f"a turn here has at most {most} steps, counted from 0; no step {step}")
    probes = [name for name in flags.probes.split(",") if name]
    check_probes(probes)
    with promised(flags.out):
        loaded = load(experiment.model, flags, catalog)
        conversation, interrupted = run(loaded, experiment)
        trace = conversation.trace
        if interrupted and steps is not None:
            steps = [step for step in steps if step < len(trace.steps(max(0, trace.turns - 1)))]
        asked = wanted(trace, loaded.facts, steps, layer=flags.layer, head=flags.head, probes=probes)
        answers, all_asked = _answers(conversation, asked)
        data = record_to_bytes(Record(trace, tuple(answers)))
        if len(data) > MAX_FILE_BYTES:
            size = f"this record would have {len(data):,} bytes, at most {MAX_FILE_BYTES:,} can be"
            raise ExperimentError("steps", size)
        flags.out.write_bytes(data)
    print(f"{flags.out}: {len(data):,} bytes, {len(answers)} answers", file=sys.stderr)
    return code(trace) if all_asked and not interrupted else INTERRUPTED


def _answers(conversation: "Conversation", asked: Wanted) -> tuple[list[Answered], bool]:
    """What the probes give, or refuse, up to Ctrl-C; with False where it was interrupted."""
    from engine.probes.table import PROBES

    answers = []
    try:
        for name, arguments in questions(conversation.trace, asked):
            try:
                found = PROBES[name](conversation, **arguments)
            except (ExperimentError, Refused) as refused:
                found = Refusal.of(refused)
            answers.append(Answered(name, arguments, found))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return answers, False
    return answers, True
