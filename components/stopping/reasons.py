"""Everything that can end a turn, in the order in which it is looked at: what decided, or why it has not yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.copy import words
from components.in_words import translated
from components.panel import View
from components.sampling.candidates import stage_name
from components.stopping.byte_buffer import completed, locate
from components.units import probability_text
from components.visible import visible, visible_bytes
from components.widgets import table
from components.widgets.table import Cell, Column
from engine.limits import ENDLESS, context_limit
from engine.trace import Stepped, Stopped, StopReason


@dataclass(frozen=True)
class Reason:
    """One thing that can end a turn: whether it is what ended it, and its numbers in words."""

    name: StopReason
    state: str  # "stopped", "also", "not_yet", "off"
    evidence: str


def reasons(view: View) -> list[Reason]:
    """As things stood after the selected step; what only ever happens from outside is listed where it did."""
    step = view.nearest_step
    steps = tuple(one for one in view.steps if step and one.step <= step.step)
    stopped = stopped_at(view)
    rows = [_length(view, steps), _stop_string(view, steps), _eos(steps), _grammar(view)]
    if stopped is None:
        return rows
    also = stopped.evidence.get("also", ())
    settled = [
        Reason(row.name, "stopped", _decided(stopped.reason, stopped.evidence, steps))
        if row.name == stopped.reason
        else Reason(row.name, "also", _decided(row.name, _also(view, row.name, steps), steps))
        if row.name in also
        else row
        for row in rows
    ]
    if all(row.name != stopped.reason for row in rows):
        settled.append(Reason(stopped.reason, "stopped", _decided(stopped.reason, stopped.evidence, steps)))
    return settled


def _also(view: View, name: StopReason, steps: Sequence[Stepped]) -> dict[str, Any]:
    """The numbers of a reason that held beside the one that decided: the trace tells its name alone."""
    assert view.trace is not None
    stop = view.trace.experiment.stop
    if name == "stop_string":
        return {"string": completed(steps, stop.stop_strings)}
    if name == "length" and len(steps) < stop.max_new_tokens:
        return {"limit": "context", "context": context_limit(view.trace.experiment, view.facts)}
    return {"limit": "max_new_tokens", "max_new_tokens": stop.max_new_tokens} if name == "length" else {}


def stopped_at(view: View) -> Stopped | None:
    """How the turn ended, if the selected step is its last; an empty turn may have ended, too."""
    if view.trace is None or (view.steps and view.nearest_step is not view.steps[-1]):
        return None
    return view.trace.stopped(view.cursor.turn)


def reasons_table(view: View) -> dict[str, Any]:
    say = words("stopping")
    columns = [Column(say.text("col_reason")), Column(say.text("col_state")), Column(say.text("col_evidence"))]
    tones: dict[str, table.Tone] = {"stopped": "accent", "also": "ok", "not_yet": "", "off": "dim"}
    rows: list[list[Cell | str]] = [
        [
            Cell(say.text(f"reason_{row.name}"), tone=tones[row.state]),
            Cell(say.text(f"state_{row.state}"), tone=tones[row.state]),
            Cell(row.evidence, tone="dim" if row.state == "off" else "", title=row.evidence),
        ]
        for row in reasons(view)
    ]
    return table.value(columns, rows)


def _length(view: View, steps: Sequence[Stepped]) -> Reason:
    assert view.trace is not None and view.rendered is not None
    experiment = view.trace.experiment
    room = context_limit(experiment, view.facts)
    text = words("stopping").text(
        "length_endless" if room == ENDLESS else "length_now",
        count=len(steps),
        limit=experiment.stop.max_new_tokens,
        used=view.trace.offset(view.cursor.turn) + len(view.rendered.token_ids) + len(steps),
        context=room,
    )
    return Reason("length", "not_yet", text)


def _stop_string(view: View, steps: Sequence[Stepped]) -> Reason:
    assert view.trace is not None
    say = words("stopping")
    strings = view.trace.experiment.stop.stop_strings
    if not strings:
        return Reason("stop_string", "off", say.text("no_stop_strings"))
    shown = ", ".join(f"“{visible(string)}”" for string in strings)
    held = steps[-1].held_bytes if steps else 0
    stopped = stopped_at(view)
    key = "stop_strings_end" if stopped and stopped.text else "stop_strings_now"
    return Reason("stop_string", "not_yet", say.text(key, strings=shown, held=held))


def _eos(steps: Sequence[Stepped]) -> Reason:
    say = words("stopping")
    if not steps or steps[-1].eos is None:
        return Reason("eos", "off", say.text("no_eos"))
    step, eos = steps[-1], steps[-1].eos
    numbers = {"id": eos.token_id, "rank": eos.rank, "p": probability_text(eos.probability)}
    if eos.cut_by:
        return Reason("eos", "not_yet", say.text("eos_cut", stage=stage_name(eos.cut_by), **numbers))
    return Reason("eos", "not_yet", say.text("eos_now", token=visible_bytes(step.token_bytes), **numbers))


def _grammar(view: View) -> Reason:
    assert view.trace is not None
    say = words("stopping")
    grammar = view.trace.experiment.grammar
    if grammar is None and view.nearest_step and any(one.name == "grammar" for one in view.nearest_step.stages):
        return Reason("grammar_end", "not_yet", say.text("grammar_of_call"))
    if grammar is None:
        return Reason("grammar_end", "off", say.text("no_grammar"))
    return Reason("grammar_end", "not_yet", say.text("grammar_now", kind=grammar.kind))


def _decided(reason: StopReason, evidence: Mapping[str, Any], steps: Sequence[Stepped]) -> str:
    """What ended the turn, or would have, with its numbers. `steps` are all of the turn."""
    say = words("stopping")
    last = steps[-1] if steps else None
    match reason:
        case "eos" | "grammar_end":
            assert last is not None
            token = visible_bytes(last.token_bytes)
            return say.text(f"decided_{reason}", token=token, id=last.token_id, step=last.step)
        case "length":
            key = "decided_context" if evidence.get("limit") == "context" else "decided_length"
            return say.text(key, count=len(steps), limit=evidence.get(evidence.get("limit", ""), len(steps)))
        case "stop_string":
            return _stop_string_text(str(evidence["string"]), steps)
        case "no_candidate":
            return say.text("decided_no_candidate", stage=stage_name(str(evidence["stage"])))
        case "cancelled" if evidence.get("limit") == "run_seconds":
            return say.text("decided_run_seconds", seconds=evidence["seconds"])
        case "tool_limit":
            return say.text("decided_tool_limit", rounds=evidence["rounds"])
        case "error":
            return visible(translated(evidence["message"])).replace("␣", " ")
        case _:
            return say.text(f"decided_{reason}")


def _stop_string_text(string: str, steps: Sequence[Stepped]) -> str:
    say = words("stopping")
    place = locate(steps, string)
    if place is None:
        return say.text("decided_stop_string", string=visible(string))
    by_step = {step.step: step for step in steps}
    first, last = by_step[place.first_step], by_step[place.last_step]
    return say.text(
        "decided_stop_string_in" if first is last else "decided_stop_string_across",
        string=visible(string),
        first=visible_bytes(first.token_bytes),
        first_step=first.step,
        last=visible_bytes(last.token_bytes),
        last_step=last.step,
    )
