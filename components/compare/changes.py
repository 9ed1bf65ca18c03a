"""What another run was asked for that this one was not, in words: the message, the settings, the token."""

import json
from typing import Any

from components.compose import transcript
from components.copy import listed, words
from components.visible import visible, visible_bytes
from engine.experiment import Experiment
from engine.trace import Trace

SHOWN = 40  # characters of a message or a value


def changes(there: Trace, here: Trace) -> str:
    """Everything in which the experiment of `there` differs from that of `here`, the first of each kind."""
    say = words("compare")
    parts = [
        _message(there, here),
        *_settings(there.experiment, here.experiment),
        _token(there, here),
    ]
    return listed(filter(None, parts)) or say.text("change_none")


def _message(there: Trace, here: Trace) -> str:
    say = words("compare")
    theirs, ours = transcript(there), transcript(here)
    for index in range(max(len(theirs), len(ours))):
        other, own = theirs[index : index + 1], ours[index : index + 1]
        if other == own:
            continue
        if not other:
            return say.text("change_shorter", count=index)
        return say.text("change_message", number=index + 1, role=other[0]["role"], text=_short(other[0]["content"]))
    return ""


def _settings(there: Experiment, here: Experiment) -> list[str]:
    theirs, ours = _flat(there), _flat(here)
    return [
        words("compare").text("change_setting", name=name, there=_short(_said(value)), here=_short(_said(ours[name])))
        for name, value in theirs.items()
        if name in ours and value != ours[name]
    ]


def _flat(experiment: Experiment) -> dict[str, Any]:
    data = experiment.model_dump(exclude={"messages", "prompt", "follow_ups", "forced"})
    found = {name: value for name, value in data.items() if not isinstance(value, dict) or name == "grammar"}
    for part in ("sampling", "stop", "context"):
        found |= data[part]
    return found


def _said(value: Any) -> str:
    if value is None:
        return words("compare").text("off")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _token(there: Trace, here: Trace) -> str:
    """The first token that a person chose in one of the two and not in the other."""
    theirs, ours = set(there.experiment.forced), set(here.experiment.forced)
    alone = sorted(theirs ^ ours, key=lambda one: (one.turn, one.step))
    if not alone:
        return ""
    turn, step = alone[0].turn, alone[0].step
    taken = there.steps(turn)[step : step + 1]
    if not taken:
        return ""
    return words("compare").text("change_token", step=step, token=visible_bytes(taken[0].token_bytes))


def _short(text: str) -> str:
    return visible(text[:SHOWN]).replace("␣", " ") + ("…" if len(text) > SHOWN else "")
