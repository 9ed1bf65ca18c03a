"""`python -m engine space readme | check | deploy`: a Hugging Face Space of this app, from the Spacefile."""

import argparse
import sys

from engine.catalog import Catalog
from engine.experiment import ExperimentError


def add(parser: argparse.ArgumentParser, catalog: Catalog) -> None:  # noqa: ARG001 - every command is given it
    """Add the command's own commands."""
    commands = parser.add_subparsers(dest="what", required=True, metavar="readme | check | deploy")
    commands.add_parser("readme", help="write the front matter of README.md from the Spacefile")
    commands.add_parser("check", help="check the Spacefile against README, tested versions, catalogue and the Hub")
    deploy = commands.add_parser("deploy", help="make the Space, or put this version into it, and wait until it runs")
    deploy.add_argument("--repo", required=True, metavar="OWNER/NAME", help="the Space")
    deploy.add_argument("--private", action="store_true", help="only you may open it")
    deploy.add_argument("--update", action="store_true", help="the Space exists: put this version in its place")
    deploy.add_argument("--dry-run", action="store_true", help="list every call with its arguments and make none")


def main(flags: argparse.Namespace, catalog: Catalog) -> int:
    """Do one of them; the exit code: 0, 1 where the check finds something. Raises `SpaceError`."""
    from engine.space import check, deploy, files, readme
    from engine.space.spacefile import SpaceError, load_spacefile

    space = load_spacefile()
    if flags.what == "readme":
        print("README.md was brought up to date" if readme.write(space, catalog) else "README.md is up to date")
        return 0
    found = check.problems(space, catalog)
    if flags.what == "check":
        print("\n".join(found) or "the Spacefile agrees with everything")
        return int(bool(found))
    if found:
        raise SpaceError(found[0])
    _check_name(flags.repo)
    calls = deploy.plan(space, flags.repo, files.uploads(space, catalog), private=flags.private, update=flags.update)
    if flags.dry_run:
        print("\n".join(call.line().rstrip("\n") for call in calls))
        return 0
    print(deploy.deploy(calls, flags.repo, say=lambda line: print(line, file=sys.stderr, flush=True)))
    for name in space.secrets:
        print(f"set the secret {name} on the Space's settings page", file=sys.stderr)
    return 0


def _check_name(repo: str) -> None:
    """Raise `ExperimentError` for a name that the Hub would not take."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils._validators import validate_repo_id

    try:
        validate_repo_id(repo)
        named = "/" in repo
    except HFValidationError:
        named = False
    if not named:
        raise ExperimentError("--repo", f"OWNER/NAME is wanted, got {repo[:60]!r}")
