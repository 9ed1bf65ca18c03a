"""Where the work of the model is done: here, on the program's one worker thread, or elsewhere (`engine.bursts`)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from engine import asking
from engine.conversation import Conversation
from engine.experiment import Experiment
from engine.given_trace import replayed
from engine.model import LoadedModel
from engine.prefix_registry import VisitorPrefixes
from engine.probes.grid import Grid
from engine.probes.table import PROBES
from engine.sessions import Session, Work
from engine.trace import Trace
from engine.worker import Serves, Worker


class Place(Protocol):
    """What a runtime needs of the model. All but `serve` are called on the session's thread of work."""

    def serve(self, chore: Callable[[], None]) -> Serves: ...
    def begin(self, session: Session, experiment: Experiment, prefixes: VisitorPrefixes | None) -> Conversation: ...
    def resume(self, session: Session, trace: Trace) -> Conversation: ...
    def replay(self, session: Session, trace: Trace) -> Conversation: ...
    def ask(self, conversation: Conversation, name: str, arguments: Mapping[str, Any]) -> Any: ...
    def answer(
        self, conversation: Conversation, name: str, arguments: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Any]: ...
    def grid(self, experiment: Experiment, overrides: Sequence[Mapping[str, Any]]) -> Work: ...


class Here:
    """The model is in this process: conversations keep their caches between two pieces of work."""

    def __init__(self, loaded: LoadedModel, cache_budget: int) -> None:
        self._loaded = loaded
        self._budget = cache_budget

    def serve(self, chore: Callable[[], None]) -> Serves:
        return Worker(chore)

    def begin(self, session: Session, experiment: Experiment, prefixes: VisitorPrefixes | None) -> Conversation:  # noqa: ARG002
        return Conversation(self._loaded, experiment, cache_budget=self._budget, prefixes=prefixes)

    def resume(self, session: Session, trace: Trace) -> Conversation:  # noqa: ARG002
        """A conversation that stands where the trace of an own run ends."""
        return Conversation.resumed(self._loaded, trace, cache_budget=self._budget)

    def replay(self, session: Session, trace: Trace) -> Conversation:  # noqa: ARG002
        """A conversation for the ids of a trace from outside. Raises `ExperimentError`."""
        return replayed(self._loaded, trace, cache_budget=self._budget)

    def ask(self, conversation: Conversation, name: str, arguments: Mapping[str, Any]) -> Any:
        """What a probe shows of the conversation."""
        return PROBES[name](conversation, **arguments)

    def answer(self, conversation: Conversation, name: str, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        """The same with arguments from outside, which are checked; they come back filled in."""
        return asking.answer(PROBES, conversation, name, arguments)

    def grid(self, experiment: Experiment, overrides: Sequence[Mapping[str, Any]]) -> Work:
        return Grid(self._loaded, experiment, overrides, cache_budget=self._budget)
