"""A record shown with no model: the run as it stood after each token, and the answers that were kept."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from engine.answers.norms import Norms
from engine.answers.parity import Parity
from engine.answers.refusal import Refusal
from engine.answers.table import ANSWERS
from engine.experiment import Experiment
from engine.facts import ModelFacts
from engine.record import Answered, Record, question
from engine.refusals import Refused
from engine.said import said
from engine.trace import Stepped, Stopped, ToolCalled, Trace


class NotRecorded(Refused):
    """The record holds no such answer. `later` is true where it does, about a part of the run not yet shown."""

    def __init__(self, probe: str, *, later: bool = False) -> None:
        super().__init__(said("not_recorded_yet" if later else "not_recorded", probe=probe))
        self.probe, self.later = probe, later


class NoModel(Refused):
    """There is only the record; nothing can be run."""

    def __init__(self) -> None:
        super().__init__(said("no_model_here"))


@dataclass(frozen=True, eq=False)
class Playback:
    """A record, step by step. `made` counts the tokens that were chosen, over all turns."""

    record: Record

    @property
    def facts(self) -> ModelFacts:
        return self.record.facts

    @property
    def steps(self) -> int:
        """Tokens chosen in the whole run."""
        return len(self._ends) - 1

    def trace_at(self, made: int) -> Trace:
        """The run when that many tokens were chosen; a turn's prompt comes with its first token."""
        whole = self.record.trace
        shown = replace(whole, events=whole.events[: self._ends[max(0, min(made, self.steps))]])
        said = shown.answered(shown.turns - 1) if shown.turns else 0
        experiment = whole.experiment.model_copy(update={"follow_ups": whole.experiment.follow_ups[:said]})
        return replace(shown, experiment=experiment)

    def probe(self, made: int, name: str, **arguments: Any) -> Any:
        """What was kept of that probe, as far as it is about what is shown.

        Raises `NotRecorded`, and `Refused` where the probe had a reason to give nothing.
        """
        shown = self.trace_at(made)
        if _has(name, "turn") and arguments.get("turn") is None:
            arguments["turn"] = max(0, shown.turns - 1)
        found = self._answers.get(_asked(name, arguments))
        if found is None:
            raise NotRecorded(name)
        if isinstance(found, Refusal):
            raise Refused(found.reason)
        rendered, steps = shown.rendered(getattr(found, "turn", 0)), shown.steps(getattr(found, "turn", 0))
        length = (len(rendered.token_ids) if rendered else 0) + len(steps)
        if _last_place(found) >= length or (isinstance(found, Parity) and len(found.ours) > len(steps)):
            raise NotRecorded(name, later=True)
        return found

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        """How many events there are after each number of tokens."""
        ends, end = [], 0
        for index, event in enumerate(self.record.trace.events):
            if isinstance(event, Stepped):
                ends.append(end)
            if isinstance(event, Stepped | Stopped | ToolCalled) or not ends:
                end = index + 1
        return (*ends, len(self.record.trace.events))

    @cached_property
    def _answers(self) -> dict[str, Any]:
        return {key: one.result for one in self.record.answers for key in keys(one)}


def keys(answered: Answered) -> tuple[str, ...]:
    """Every way in which the same may be asked: with the places named that the answer tells, and without."""
    result, given = answered.result, answered.arguments
    told = {name: getattr(result, name, None) for name in ("turn", "layer", "head")}
    whole = {name: value for name, value in told.items() if value is not None} | given
    place = getattr(result, "position", getattr(result, "last", None))
    if "position" in given or place is None:
        return (_asked(answered.probe, whole),)
    return _asked(answered.probe, whole), _asked(answered.probe, whole | {"position": place})


def _asked(probe: str, arguments: Mapping[str, Any]) -> str:
    """The question; an empty text asks for nothing."""
    return question(probe, {name: value for name, value in arguments.items() if value != ""})


def _last_place(found: Any) -> int:
    """The last position that an answer tells of, 0 where it tells of none."""
    if isinstance(found, Norms):
        return int(found.positions[-1])
    return max(getattr(found, place, 0) for place in ("position", "key_position", "last"))


def _has(probe: str, name: str) -> bool:
    return any(item.name == name for item in dataclasses.fields(ANSWERS[probe])) if probe in ANSWERS else False


def same_model(recorded: ModelFacts, loaded: ModelFacts) -> bool:
    """True where what the loaded model computes belongs to the recorded run: all but where it is and what it is
    called must be the same.
    """
    return replace(recorded, device=loaded.device, title=loaded.title) == loaded


class WithoutModel:
    """Stands where the engine stands, for a page that only shows records: sessions are nothing, no run begins."""

    def __init__(self, facts: ModelFacts, catalog: Any) -> None:
        self.facts, self.catalog = facts, catalog
        self.offered: tuple[str, ...] = ()

    def facts_of(self, _session: str) -> ModelFacts:
        return self.facts

    def open(self, session_id: str | None = None) -> str:
        return session_id or "record"

    def close(self, _session: str) -> None: ...

    def trace(self, _session: str) -> None: ...

    def stop(self, _session: str) -> None: ...

    def branches(self, _session: str) -> tuple[Any, ...]:
        return ()

    def parse(self, _source: Any) -> Experiment:
        raise NoModel

    def __getattr__(self, name: str) -> Any:
        """Whatever else the engine can do needs a model."""
        raise NoModel
