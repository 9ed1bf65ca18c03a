"""Asking a probe by its name with plain arguments: what it takes is read off its signature, and refused in one line.

The page, the endpoint and the command line ask the same functions. Beside what a probe takes itself, `step` may stand
for `position`: the position that was fed before that step, whose logits the step chose from.
"""

import inspect
import json
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, Literal, Protocol, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from engine.conversation import Conversation
from engine.experiment import ExperimentError, fault, replace_lone_surrogates
from engine.given_trace import fed
from engine.limits import no_such
from engine.said import said
from engine.stages.snapshots import NoCandidate

Probes = Mapping[str, Callable[..., Any]]


class Sizes(Protocol):
    """What must be known of a model: its facts, or its entry in the catalogue."""

    @property
    def layers(self) -> int: ...
    @property
    def heads(self) -> int: ...


#: Characters of the arguments as JSON.
MAX_ARGUMENTS = 20_000


def parameters(probe: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """What a probe takes beside the conversation, by name."""
    _, *named = inspect.signature(probe).parameters.values()
    return {parameter.name: parameter for parameter in named}


def taken(probe: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the arguments with which a probe may be asked."""
    names = tuple(parameters(probe))
    return (*names, "step") if "position" in names and "step" not in names else names


def check(probes: Probes, name: str, arguments: Mapping[str, Any], model: Sizes) -> dict[str, Any]:
    """The arguments, validated as far as they can be before anything runs: names, types, layer and head.

    Raises `ExperimentError`, which says what is allowed.
    """
    if not isinstance(name, str) or name not in probes:
        raise ExperimentError("probe", said("unknown_probe", name=str(name)[:60], known=", ".join(sorted(probes))))
    probe, allowed = probes[name], taken(probes[name])
    if not isinstance(arguments, Mapping) or len(json.dumps(arguments, default=str)) > MAX_ARGUMENTS:
        raise ExperimentError("arguments", said("arguments_wanted", most=MAX_ARGUMENTS))
    for argument in arguments:
        if argument not in allowed:
            taken_here = ", ".join(allowed) or said("no_arguments")
            raise ExperimentError(str(argument)[:60], said("unknown_argument", probe=name, taken=taken_here))
    if "step" not in parameters(probe) and None not in (arguments.get("step"), arguments.get("position")):
        raise ExperimentError("step", said("step_and_position"))
    hints = get_type_hints(probe) | ({} if "step" in parameters(probe) else {"step": int | None})
    checked = {key: _typed(key, hints[key], value) for key, value in arguments.items()}
    for key, parameter in parameters(probe).items():
        if parameter.default is inspect.Parameter.empty and key not in checked:
            raise ExperimentError(key, said("argument_needed", probe=name, taken=", ".join(allowed)))
    for key, count in (("layer", model.layers), ("head", model.heads)):
        value = checked.get(key)
        if value is not None and not 0 <= value < count:
            raise no_such(key, count, value)
    return checked


def answer(
    probes: Probes, conversation: Conversation, name: str, arguments: Mapping[str, Any]
) -> tuple[dict[str, Any], Any]:
    """The arguments with turn and position filled in where they are known, and what the probe gives.

    Raises `ExperimentError` for what is not there, `Refused` for what the model cannot show.
    """
    checked = check(probes, name, arguments, conversation.loaded.facts)
    asked = _placed(conversation, probes[name], checked)
    try:
        return asked, probes[name](conversation, **asked)
    except NoCandidate as error:
        raise ExperimentError("step", error.args[0]) from error


def read_argument(probe: Callable[..., Any], name: str, text: str) -> Any:
    """An argument that was written as text: JSON, or the text itself where the probe wants one.

    Where null may stand beside a text, and where some texts are known, JSON that is one of these is read as such.
    """
    hint = get_type_hints(probe).get(name)
    if hint is str:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        if _takes_text(hint):
            return text
        raise ExperimentError(name, said("not_json", got=text[:60])) from None
    return text if _takes_text(hint) and not isinstance(value, str | None) else value


def _takes_text(hint: Any) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(map(_takes_text, get_args(hint)))
    return hint is str or (get_origin(hint) is Literal and any(isinstance(known, str) for known in get_args(hint)))


def _typed(name: str, hint: Any, value: Any) -> Any:
    if isinstance(value, list | tuple):
        value = [replace_lone_surrogates(item) for item in value]
    try:
        return TypeAdapter(hint).validate_python(replace_lone_surrogates(value), strict=True)
    except ValidationError as error:
        raise ExperimentError(name, fault(error.errors(include_url=False)[0], repr(str(value)[:60]))) from None


def _placed(conversation: Conversation, probe: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """`turn` as a number, within range, and `step` in range; where it stands for a position, as that."""
    named, trace = parameters(probe), conversation.trace
    if "turn" not in named:
        return arguments
    asked = arguments.get("turn")
    turn = max(0, trace.turns - 1) if asked is None else asked
    rendered = trace.rendered(turn)
    if rendered is None:
        key = "no_such_turn_here" if trace.turns else "no_turn_at_all"
        raise ExperimentError("turn", said(key, last=trace.turns - 1, turn=turn))
    fed(trace, turn)
    placed, step = arguments | {"turn": turn}, arguments.get("step")
    if "step" not in named:
        placed.pop("step", None)
    if step is None:
        return placed
    made = len(trace.steps(turn))
    if not 0 <= step <= made:
        raise ExperimentError("step", said("step_out_of_turn", turn=turn, last=made, step=step))
    return placed if "step" in named else placed | {"position": len(rendered.token_ids) + step - 1}
