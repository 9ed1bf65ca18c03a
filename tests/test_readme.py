"""What the documents say is true: JSON that parses, options that exist, files that are there, every field named."""

import dataclasses
import json
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest
from pydantic import BaseModel

from engine.catalog import load_catalog
from engine.experiment import Experiment, Forced, Grammar, Message, Sampling, Stop, parse_experiment
from engine.trace import Draw, EosScore, Event, Parted, Span, Stage, StopReason
from engine.truncated import Portion, Summary
from engine.values import Context

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / name for name in ("README.md", "CHANGELOG.md")]
DOCUMENTS += [ROOT / "docs" / f"{name}.md" for name in ("architecture", "api", "deploy", "lessons", "numbers")]
API = (ROOT / "docs" / "api.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")
CODE = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(text: str, language: str) -> list[str]:
    return [code for found, code in CODE.findall(text) if found == language]


@pytest.mark.parametrize("text", [*blocks(README, "json"), *blocks(API, "json")])
def test_every_experiment_in_the_documents_is_one(text: str) -> None:
    parse_experiment(text, models=load_catalog().loadable_ids)


@pytest.mark.parametrize("code", [*blocks(README, "python"), *blocks(API, "python")])
def test_every_snippet_compiles_and_its_experiment_is_one(code: str) -> None:
    compile(code, "snippet", "exec")
    for line in code.splitlines():
        if line.startswith("experiment = "):
            parse_experiment(json.loads(line.removeprefix("experiment = ")), models=load_catalog().loadable_ids)


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_linked_files_and_pictures_exist(document: Path) -> None:
    targets = ["".join(pair) for pair in LINK.findall(document.read_text("utf-8"))]
    local = [target for target in targets if not target.startswith("http")]
    assert [target for target in local if not (document.parent / target).is_file()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_files_named_in_the_documents_exist(document: Path) -> None:
    paths = re.findall(r"`((?:engine|components|assets|tests|benchmarks|docs)/[\w./-]*)`", document.read_text("utf-8"))
    assert [path for path in paths if not (ROOT / path).exists()] == []


def help_of(*command: str) -> str:
    answer = subprocess.run([sys.executable, *command, "--help"], cwd=ROOT, capture_output=True, text=True, check=True)
    return answer.stdout


def test_the_options_of_the_app_are_those_of_its_help() -> None:
    table = README.partition("## Options of the app")[2].partition("\n## ")[0]
    told = set(re.findall(r"`(--[\w-]+)`", table))
    known = set(re.findall(r"--[\w-]+", help_of("app.py"))) - {"--help"}
    assert told - {"--help"} == known


def test_the_options_of_the_command_line_are_those_of_its_help() -> None:
    told = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", API.partition("## Command line")[2]))
    helps = "".join(help_of("-m", "engine", command) for command in ("run", "probe", "record", "models"))
    assert told == set(re.findall(r"--[\w-]+", helps)) - {"--help"}


@pytest.mark.parametrize("command", ["run", "probe", "record"])
def test_each_command_that_loads_a_model_takes_the_same_options_for_that(command: str) -> None:
    told = re.search(r"`--model` runs on .*? are those of the app", API)
    assert told
    options = set(re.findall(r"--[\w-]+", told[0]))
    assert (
        {"--model", "--device", "--offload"}
        <= options
        <= set(re.findall(r"--[\w-]+", help_of("-m", "engine", command)))
    )


@pytest.mark.parametrize("document", ["README.md", "docs/api.md", "docs/deploy.md", "docs/lessons.md"])
def test_commands_are_told_as_they_work_after_the_first_start(document: str) -> None:
    """The system's Python has none of the packages."""
    text = (ROOT / document).read_text("utf-8")
    assert ".venv/bin/python" in text
    assert re.findall(r"(?:^|`)python (?:-m engine|app\.py|lesson\.py).*", text, re.MULTILINE) == []


def test_every_package_is_required_once() -> None:
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    names = [re.split(r"[<>=]", line)[0] for line in lines if line and not line.startswith("#")]
    assert len(names) > 8
    assert len(names) == len(set(names))


def test_the_options_of_a_deploy_are_those_of_its_help() -> None:
    told = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", (ROOT / "docs" / "deploy.md").read_text("utf-8")))
    assert told == set(re.findall(r"--[\w-]+", help_of("-m", "engine", "space", "deploy"))) - {"--help"}


def test_the_targets_of_make_exist() -> None:
    told = set(re.findall(r"^make (\w+)", "\n".join(blocks(README, "sh")), re.MULTILINE))
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert phony
    assert told == set(phony[1].split())


#: Prefix of the fields in the table, and the value that has them.
PARTS: dict[str, type[BaseModel]] = {
    "": Experiment,
    "messages[].": Message,
    "grammar.": Grammar,
    "sampling.": Sampling,
    "stop.": Stop,
    "context.": Context,
    "forced[].": Forced,
}


def rows(heading: str) -> dict[str, list[str]]:
    """The tables under a heading, by the text of their first cell."""
    section = API.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return {row[0].strip("`"): row[1:] for row in cells}


@pytest.mark.parametrize("prefix", PARTS)
def test_every_field_of_an_experiment_is_told_with_its_default(prefix: str) -> None:
    told = rows("Experiment")
    for field, info in PARTS[prefix].model_fields.items():
        if prefix == "" and field in ("sampling", "stop", "context"):
            continue
        default = told[prefix + field][0]
        if info.is_required() or (prefix == "" and field in ("messages", "prompt")):
            assert default == "–"
        else:
            value = (
                info.default
                if isinstance(info.default, float)
                else list(info.default)
                if info.default == ()
                else info.default
            )
            assert default.strip("`") == json.dumps(value)


def test_no_field_is_told_that_does_not_exist() -> None:
    known = {prefix + field for prefix, part in PARTS.items() for field in part.model_fields}
    assert set(rows("Experiment")) - {"field", "---"} <= known


@pytest.mark.parametrize("event", typing.get_args(Event), ids=lambda event: event.kind)
def test_every_field_of_an_event_is_told(event: type) -> None:
    (told,) = rows("Trace")[event.kind]  # type: ignore[attr-defined]
    fields = {field.name for field in dataclasses.fields(event)} - {"turn"}
    assert fields <= set(re.findall(r"`(\w+)`", told))


@pytest.mark.parametrize(
    ("row", "part"),
    [
        ("a span", Span),
        ("parted", Parted),
        ("a stage", Stage),
        ("draw", Draw),
        ("eos", EosScore),
        ("a portion", Portion),
        ("a summary", Summary),
    ],
)
def test_every_part_of_an_event_is_told(row: str, part: type) -> None:
    (told,) = rows("Trace")[row]
    assert {field.name for field in dataclasses.fields(part)} <= set(re.findall(r"`(\w+)`", told))


def test_every_reason_to_stop_is_told() -> None:
    (told,) = rows("Trace")["stopped"]
    assert set(typing.get_args(StopReason)) <= set(re.findall(r"`(\w+)`", told))
