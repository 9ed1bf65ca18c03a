"""What the next token belongs to: the run as it is, a new one with the settings as they stand, or a further message."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.compose import answered, form_part, transcript, unchanged
from components.copy import words
from components.editing import edited
from components.panel import View
from engine.experiment import Experiment
from engine.refusals import Refused
from engine.trace import Trace

#: An experiment of the form and these messages.
Parse = Callable[[dict[str, Any], Sequence[dict[str, str]]], Experiment]


@dataclass(frozen=True)
class NextRun:
    """`experiment` is begun anew where `anew`; where `says`, it is the run in sight with one follow-up more."""

    experiment: Experiment
    anew: bool = False
    says: bool = False


def next_run(view: View, editing: int | None, message: str, form: Mapping[str, Any], parse: Parse) -> NextRun:
    """New settings start the answer again, a message opens a turn, an edited message goes another way.

    `editing` is the message that is being edited. Raises `ExperimentError` for settings that make no experiment,
    `Refused` where a message has to wait.
    """
    trace = view.trace
    assert trace is not None
    now, as_shown = trace.experiment, unchanged(form, trace.experiment)
    if as_shown and not message.strip():
        return NextRun(now)
    history = transcript(trace)
    asked = parse(dict(form), history)
    changed = not as_shown and form_part(asked) != form_part(now)
    said = {"role": "user", "content": message}
    stopped = trace.stopped(trace.turns - 1)
    if not message.strip():
        return NextRun(asked, anew=True) if changed else NextRun(now)
    if editing is not None:
        return NextRun(parse(dict(form), edited(view, editing, message)), anew=True)
    if asked.prompt is not None or not trace.steps(0):
        return NextRun(parse(dict(form), [said]), anew=True)
    if stopped is None or trace.calling:
        raise Refused(words("page").text("answer_first"))
    if stopped.reason == "error":
        return NextRun(parse(dict(form), [*history[:-1], said]), anew=True)
    if changed or waiting(trace) not in (None, message):
        return NextRun(parse(dict(form), [*answered(trace), said]), anew=True)
    if waiting(trace) is None:
        return NextRun(now.model_copy(update={"follow_ups": (*now.follow_ups, message)}), says=True)
    return NextRun(now)


def waiting(trace: Trace) -> str | None:
    """A message that was taken while its turn has not begun: its run was refused, as too many were under way."""
    return next(iter(trace.experiment.follow_ups[trace.answered(trace.turns - 1) :]), None) if trace.turns else None
