"""Without a page: `python -m engine run experiment.json`, `… probe NAME experiment.json` and `… space`."""

import sys
from collections.abc import Sequence
from typing import Any

from engine.catalog import Catalog, ModelError, load_catalog
from engine.commands import probe, run, space
from engine.commands.reading import BAD_INPUT, FAILED_RUN, OneLineParser, one_line
from engine.experiment import ExperimentError
from engine.refusals import Refused
from engine.space.spacefile import SpaceError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code: 0, 1 when the run ended in an error, 2 for bad input, 130 on Ctrl-C."""
    catalog = load_catalog()
    flags = _parser(catalog).parse_args(arguments)
    try:
        code: int = flags.command(flags, catalog)
    except SpaceError as error:  # its lines are a log's
        print("\n".join(map(one_line, f"error: {error}".splitlines())), file=sys.stderr)
        return FAILED_RUN
    except (ExperimentError, ModelError, OSError, Refused) as error:
        print(one_line(f"error: {error}"), file=sys.stderr)
        return BAD_INPUT
    return code


def _parser(catalog: Catalog) -> OneLineParser:
    parser = OneLineParser(prog="python -m engine", description="Run a causal language model token by token.")
    commands = parser.add_subparsers(required=True, metavar="run | probe | space")
    described: tuple[tuple[str, Any, str], ...] = (
        ("run", run, "run an experiment and write its trace"),
        ("probe", probe, "run an experiment, or feed a trace's ids, and print what a probe shows of it"),
        ("space", space, "describe and make a Hugging Face Space of this app"),
    )
    for name, module, said in described:
        command = commands.add_parser(name, help=said)
        module.add(command, catalog)
        command.set_defaults(command=module.main)
    return parser


if __name__ == "__main__":
    sys.exit(main())
