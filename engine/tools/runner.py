"""Runs the calls of an answer: each is checked against its schema, has limits of time and size, and never raises."""

import logging
import threading
import time
from collections.abc import Sequence
from typing import Any

import jsonschema

from engine.tools.calls import Call, parse
from engine.tools.tool import Setting, Tool, ToolError
from engine.trace import ToolCalled

log = logging.getLogger(__name__)

MAX_SECONDS = 5.0
MAX_CHARACTERS = 2_000  # of a result, and of an error


def run_calls(text: str, tools: Sequence[Tool], setting: Setting, turn: int) -> tuple[ToolCalled, ...]:
    """An event for each closed call of the answer, in order."""
    by_name = {tool.name: tool for tool in tools}
    return tuple(_called(call, by_name, setting, turn) for call in parse(text))


def problem(call: Call, tools: dict[str, Tool]) -> str | None:
    """Why the call cannot be run: broken, of an unknown tool, or against the tool's schema (with the path there)."""
    if call.error is not None:
        return call.error
    if call.name not in tools:
        return f"unknown tool {call.name!r}; there are: {', '.join(tools)}"
    validator = jsonschema.Draft202012Validator(tools[call.name].parameters)
    errors = sorted(validator.iter_errors(call.arguments), key=lambda error: list(map(str, error.absolute_path)))
    if not errors:
        return None
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in errors[0].absolute_path)
    return f"arguments{path}: {_short(errors[0].message, 200)}"


def _called(call: Call, tools: dict[str, Tool], setting: Setting, turn: int) -> ToolCalled:
    started = time.perf_counter()
    result, error = None, problem(call, tools)
    if error is None:
        result, error = _limited(tools[call.name], call.arguments, setting)
    return ToolCalled(
        turn=turn,
        name=call.name,
        arguments=call.arguments,
        result=result,
        error=None if error is None else _short(error, MAX_CHARACTERS),
        seconds=time.perf_counter() - started,
    )


def _limited(tool: Tool, arguments: dict[str, Any], setting: Setting) -> tuple[str | None, str | None]:
    """Result and error of a run on a thread of its own, which nobody waits for longer than the limit."""
    answer: list[tuple[str | None, str | None]] = []

    def work() -> None:
        try:
            answer.append((tool.run(arguments, setting), None))
        except ToolError as error:
            answer.append((None, str(error)))
        except Exception as error:  # a fault of the tool must not end the run: the model is told, the log has the rest
            log.exception("the tool %s failed", tool.name)
            answer.append((None, f"the tool failed ({type(error).__name__})"))

    thread = threading.Thread(target=work, name=f"tool {tool.name}", daemon=True)
    thread.start()
    thread.join(MAX_SECONDS)
    if not answer:
        return None, f"no result within {MAX_SECONDS:g} seconds"
    result, error = answer[0]
    if result is not None and len(result) > MAX_CHARACTERS:
        return None, f"the result has {len(result):,} characters, at most {MAX_CHARACTERS:,} go back"
    return result, error


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
