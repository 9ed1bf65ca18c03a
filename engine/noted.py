"""A finished run that keeps what is asked about it: the answers of probes that a record of it must hold.

It offers what a page asks of the runtime, for one run and as the run stood at some moment.
"""

from collections.abc import Mapping
from typing import Any

from engine.asking import answer, parameters
from engine.catalog import Catalog
from engine.conversation import Conversation
from engine.experiment import Experiment, ExperimentError
from engine.facts import ModelFacts
from engine.lesson_paths import PathError
from engine.model import LoadedModel
from engine.playback import Playback
from engine.probes.table import PROBES
from engine.record import Answered, Record, question
from engine.refusals import Refused
from engine.said import said
from engine.trace import Trace


class NotedRun:
    """An experiment run to its end on a model."""

    def __init__(self, loaded: LoadedModel, experiment: Experiment, catalog: Catalog) -> None:
        self.catalog = catalog
        self._loaded = loaded
        self._run = Conversation(loaded, experiment)
        while self._run.advance():
            pass
        self._standing = self._run
        self._answers: dict[str, tuple[Answered, int]] = {}  # with the number of events that had happened

    @property
    def facts(self) -> ModelFacts:
        return self._loaded.facts

    def facts_of(self, session_id: str) -> ModelFacts:  # noqa: ARG002
        return self.facts

    @property
    def whole(self) -> Trace:
        """All that happened."""
        return self._run.trace

    @property
    def record(self) -> Record:
        """The run with every answer that was given so far."""
        return Record(self.whole, tuple(answered for answered, _ in self._answers.values()))

    def stand(self, made: int) -> None:
        """Show the run as it was when that many tokens, over all turns, were made."""
        trace = Playback(self.record).trace_at(made)
        at_the_end = len(trace.events) == len(self.whole.events)
        self._standing = self._run if at_the_end else Conversation.resumed(self._loaded, trace)

    def trace(self, session_id: str) -> Trace:  # noqa: ARG002 — a page names its session; here is one
        return self._standing.trace

    def branches(self, session_id: str) -> tuple[()]:  # noqa: ARG002
        return ()

    def probe(self, session_id: str, name: str, **arguments: Any) -> Any:  # noqa: ARG002
        """What a probe gives, as the page asks for it; the answer is kept."""
        if "turn" in parameters(PROBES[name]):
            arguments = {"turn": max(0, self._standing.trace.turns - 1)} | arguments
        return self._kept(name, arguments, lambda: PROBES[name](self._standing, **arguments))

    def ask(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """What a probe gives, as a claim asks for it. Raises `PathError` where it gives nothing."""
        try:
            asked, given = answer(PROBES, self._run, name, arguments)
        except (ExperimentError, Refused) as refused:
            raise PathError(str(refused)) from None
        return self._kept(name, asked, lambda: given)

    def _kept(self, name: str, arguments: Mapping[str, Any], give: Any) -> Any:
        key, moment = question(name, arguments), len(self._standing.trace.events)
        if key in self._answers:
            answered, then = self._answers[key]
            if then != moment and "turn" not in parameters(PROBES[name]):
                raise Refused(said("one_moment", probe=name))
            return answered.result
        self._answers[key] = (Answered(name, dict(arguments), give()), moment)
        return self._answers[key][0].result
