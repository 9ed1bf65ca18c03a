"""Without a page: `python -m engine run experiment.json --out trace.json`."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from engine.catalog import Catalog, ModelError, load_catalog
from engine.experiment import MAX_JSON_BYTES, Experiment, ExperimentError, parse_experiment
from engine.settings import Settings
from engine.trace import Event, Prefilled, Stepped, Stopped, Trace
from engine.trace_json import trace_to_json

BAD_INPUT = 2
FAILED_RUN = 1
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one experiment; the exit code: 0, 1 when the run ended in an error, 2 for bad input, 130 on Ctrl-C."""
    catalog = load_catalog()
    flags = _parser(catalog).parse_args(arguments)
    try:
        experiment = _read(flags.experiment, catalog)
        if flags.model:
            experiment = experiment.model_copy(update={"model": flags.model})
        _check_out(flags.out)
        trace = _run(experiment, catalog, device=flags.device, dtype=flags.dtype)
        _write(trace, flags.out)
    except (ExperimentError, ModelError, OSError) as error:
        print(_one_line(f"error: {error}"), file=sys.stderr)
        return BAD_INPUT
    return _code(trace)


def _parser(catalog: Catalog) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine", description="Run a causal language model token by token.")
    commands = parser.add_subparsers(required=True, metavar="run")
    run = commands.add_parser("run", help="run an experiment and write its trace")
    run.add_argument("experiment", help="experiment as JSON; - reads standard input")
    run.add_argument("--out", type=Path, help="file for the trace as JSON (default: standard output)")
    run.add_argument("--model", choices=catalog.loadable_ids, help="run on this model, not on the one that is named")
    Settings.add_flags(run, "device", "dtype")
    return parser


def _read(source: str, catalog: Catalog) -> Experiment:
    if source == "-":
        data = sys.stdin.buffer.read(MAX_JSON_BYTES + 1)
    else:
        with Path(source).open("rb") as file:
            data = file.read(MAX_JSON_BYTES + 1)
    if len(data) > MAX_JSON_BYTES:
        raise ExperimentError("", f"an experiment has at most {MAX_JSON_BYTES:,} bytes, this has more")
    return parse_experiment(data, models=catalog.loadable_ids)


def _run(experiment: Experiment, catalog: Catalog, *, device: str, dtype: str) -> Trace:
    # torch takes seconds to import: a bad experiment is told before.
    from engine.conversation import Conversation
    from engine.model import load

    entry = catalog.find(experiment.model)
    print(f"loading {entry.title}", file=sys.stderr)
    conversation = Conversation(load(entry, device=device, dtype=dtype), experiment)
    try:
        while events := conversation.advance():
            for event in events:
                _report(event)
    except KeyboardInterrupt:
        conversation.cancel()
        _report(conversation.trace.events[-1])
    return conversation.trace


def _report(event: Event) -> None:
    match event:
        case Prefilled():
            line = f"turn {event.turn}: {event.last - event.first + 1} positions prefilled in {event.seconds:.2f} s"
        case Stepped():
            line = f"{event.position}: {event.token_id} {event.piece!r} in {1000 * event.seconds:.0f} ms"
        case Stopped():
            line = f"turn {event.turn} stopped: {event.reason} {json.dumps(event.evidence, default=str)}"
        case _:
            return
    print(_one_line(line), file=sys.stderr)


def _check_out(out: Path | None) -> None:
    """Raise OSError for a file that cannot be written, before the work and not after it."""
    if out is not None:
        with out.open("ab"):
            pass


def _write(trace: Trace, out: Path | None) -> None:
    text = json.dumps(trace_to_json(trace), ensure_ascii=False, allow_nan=False) + "\n"
    if out is None:
        sys.stdout.buffer.write(text.encode("utf-8"))
        sys.stdout.buffer.flush()
    else:
        out.write_text(text, encoding="utf-8")


def _code(trace: Trace) -> int:
    last = trace.events[-1] if trace.events else None
    if not isinstance(last, Stopped):
        return 0
    return {"error": FAILED_RUN, "cancelled": INTERRUPTED}.get(last.reason, 0)


def _one_line(text: str) -> str:
    """One printable line: no line break or escape sequence of a file reaches the terminal."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in " ".join(text.split()))


if __name__ == "__main__":
    sys.exit(main())
