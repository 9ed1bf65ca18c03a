"""Without a page: `python -m engine run`, `probe` and `record`, each with an experiment as JSON."""

import sys
from collections.abc import Sequence

from engine.catalog import Catalog, ModelError, load_catalog
from engine.commands import probe, record, run
from engine.commands.reading import BAD_INPUT, OneLineParser, one_line
from engine.experiment import ExperimentError
from engine.refusals import Refused


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code: 0, 1 when the run ended in an error, 2 for bad input, 130 on Ctrl-C."""
    catalog = load_catalog()
    flags = _parser(catalog).parse_args(arguments)
    try:
        code: int = flags.command(flags, catalog)
    except (ExperimentError, ModelError, OSError, Refused) as error:
        print(one_line(f"error: {error}"), file=sys.stderr)
        return BAD_INPUT
    return code


def _parser(catalog: Catalog) -> OneLineParser:
    parser = OneLineParser(prog="python -m engine", description="Run a causal language model token by token.")
    commands = parser.add_subparsers(required=True, metavar="run | probe | record")
    for name, module, said in (
        ("run", run, "run an experiment and write its trace"),
        ("probe", probe, "run an experiment, or feed a trace's ids, and print what a probe shows of it"),
        ("record", record, "run an experiment and keep its trace, and what probes show of it, in one file"),
    ):
        command = commands.add_parser(name, help=said)
        module.add(command, catalog)
        command.set_defaults(command=module.main)
    return parser


if __name__ == "__main__":
    sys.exit(main())
