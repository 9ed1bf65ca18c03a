"""Without a page: `python -m engine run`, `probe` and `record` with an experiment as JSON, `models` and `space`."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from engine.catalog import Catalog, ModelError, load_catalog
from engine.commands import models, probe, record, run, space
from engine.commands.reading import BAD_INPUT, FAILED_RUN, INTERRUPTED, OneLineParser, one_line
from engine.experiment import ExperimentError
from engine.loading.added import with_added
from engine.refusals import Refused
from engine.settings import Settings
from engine.space.spacefile import SpaceError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code: 0, 1 when the run ended in an error, 2 for bad input, 130 on Ctrl-C."""
    try:
        catalog = with_added(load_catalog(), Settings.from_flags(argparse.Namespace()).add_model)
    except (ModelError, ValueError) as error:
        print(one_line(f"error: {error}"), file=sys.stderr)
        return BAD_INPUT
    flags = _parser(catalog).parse_args(arguments)
    try:
        code: int = flags.command(flags, catalog)
    except SpaceError as error:  # its lines are a log's
        print("\n".join(map(one_line, f"error: {error}".splitlines())), file=sys.stderr)
        return FAILED_RUN
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except (ExperimentError, ModelError, OSError, Refused, ValueError) as error:
        print(one_line(f"error: {error}"), file=sys.stderr)
        return BAD_INPUT
    return code


def _parser(catalog: Catalog) -> OneLineParser:
    parser = OneLineParser(prog="python -m engine", description="Run a causal language model token by token.")
    commands = parser.add_subparsers(required=True, metavar="run | probe | record | models | space")
    described: tuple[tuple[str, Any, str], ...] = (
        ("run", run, "run an experiment and write its trace"),
        ("probe", probe, "run an experiment, or feed a trace's ids, and print what a probe shows of it"),
        ("record", record, "run an experiment and keep its trace, and what probes show of it, in one file"),
        ("models", models, "list the catalogue, the memory each model needs and what fits here"),
        ("space", space, "describe and make a Hugging Face Space of this app"),
    )
    for name, module, said in described:
        command = commands.add_parser(name, help=said)
        module.add(command, catalog)
        command.set_defaults(command=module.main)
    return parser


if __name__ == "__main__":
    sys.exit(main())
