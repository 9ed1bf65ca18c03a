"""Many models behind one door: `ManyRuntimes` has the methods of `Runtime`, and each call goes to the runtime of the
session's model. An experiment that is started moves its session to the model that it names.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from engine.catalog import Catalog
from engine.experiment import Experiment, parse_experiment
from engine.facts import ModelFacts
from engine.given_trace import is_trace
from engine.models_at_hand import ModelsAtHand
from engine.refusals import ModelPutAway, Refused
from engine.said import said
from engine.tools.registry import TOOLS
from engine.trace import Trace

if TYPE_CHECKING:
    from engine.answers.grid import GridResult
    from engine.branches import Branch
    from engine.runtime import Runtime

#: Sessions whose model is remembered; an older one begins again on the model that the program started with.
REMEMBERED = 10_000


class ManyRuntimes:
    """Every method may be called from any thread, once the model that the program started with is here."""

    def __init__(self, hand: ModelsAtHand) -> None:
        self.hand = hand
        self._places: OrderedDict[str, str] = OrderedDict()  # session → model
        self._lock = threading.Lock()

    @property
    def catalog(self) -> Catalog:
        return self.hand.catalog

    def at(self, session_id: str) -> "Runtime":
        """The runtime of the session's model. Raises `ModelPutAway` where that model was put away."""
        runtime = self.hand.loaded(self._places.get(session_id, self.hand.started))
        if runtime is None:
            raise ModelPutAway
        return runtime

    def facts_of(self, session_id: str) -> ModelFacts:
        """The facts of the session's model, also where it was put away."""
        return self.hand.facts[self._places.get(session_id, self.hand.started)]

    @property
    def facts(self) -> ModelFacts:
        """The facts of the model that the program started with."""
        return self.hand.facts[self.hand.started]

    @property
    def offered(self) -> tuple[str, ...]:
        """Ids of the models that an experiment may run on."""
        return self.hand.offered

    def parse(self, source: str | bytes | dict[str, Any]) -> Experiment:
        """An experiment on one of the models that are offered. Raises `ExperimentError`."""
        experiment = parse_experiment(source, models={*self.offered, *self.hand.catalog.loadable_ids}, tools=TOOLS)
        self.hand.check(experiment.model)
        return experiment

    def open(self, session_id: str | None = None) -> str:
        """A session on the model that the program started with; a known one goes on where it is."""
        place = self._places.get(session_id or "", self.hand.started)
        runtime = self.hand.loaded(place) or self.hand.loaded(self.hand.started)
        assert runtime is not None, "the first model is never put away"
        opened = runtime.open(session_id)
        self._put(opened, runtime.facts.model_id)
        return opened

    def close(self, session_id: str) -> None:
        """End a session. Never raises or waits."""
        runtime = self.hand.loaded(self._places.pop(session_id, self.hand.started))
        if runtime is not None:
            runtime.close(session_id)

    def shut_down(self) -> None:
        """End every worker that is here; nothing runs after this."""
        for model_id in self.hand.at_hand:
            runtime = self.hand.loaded(model_id)
            if runtime is not None:
                runtime.shut_down()

    def start(self, session_id: str, experiment: Experiment, *, branch: bool = False) -> Trace:
        """As `Runtime.start`, on the model that the experiment names; what was on another model is given up.

        Raises `Refused` where that model is not here yet.
        """
        self.hand.check(experiment.model)
        target, former = self.hand.loaded(experiment.model), self._places.get(session_id, self.hand.started)
        if target is None:
            title = self.hand.catalog.find(experiment.model).title
            raise Refused(said("model_not_here", title=title))
        if experiment.model == former:
            return target.start(session_id, experiment, branch=branch)
        before = self.hand.loaded(former)
        target.open(session_id)
        with ExitStack() as on_failure:
            on_failure.callback(target.close, session_id)
            trace = target.start(session_id, experiment)
            on_failure.pop_all()
        self._put(session_id, experiment.model)
        if before is not None:
            before.close(session_id)
        return trace

    def _put(self, session_id: str, model_id: str) -> None:
        with self._lock:
            self._places[session_id] = model_id
            self._places.move_to_end(session_id)
            while len(self._places) > REMEMBERED:
                self._places.popitem(last=False)

    # What a runtime does, done by the one of the session.

    def trace(self, session_id: str) -> Trace | None:
        return self.at(session_id).trace(session_id)

    def prepare(self, session_id: str) -> Trace:
        return self.at(session_id).prepare(session_id)

    def step(self, session_id: str) -> Trace:
        return self.at(session_id).step(session_id)

    def run(self, session_id: str) -> Iterator[Trace]:
        return self.at(session_id).run(session_id)

    def stop(self, session_id: str) -> Trace | None:
        return self.at(session_id).stop(session_id)

    def back(self, session_id: str) -> Trace:
        return self.at(session_id).back(session_id)

    def force(self, session_id: str, step: int, token_id: int) -> Trace:
        return self.at(session_id).force(session_id, step, token_id)

    def say(self, session_id: str, text: str) -> Trace:
        return self.at(session_id).say(session_id, text)

    def probe(self, session_id: str, name: str, **arguments: Any) -> Any:
        return self.at(session_id).probe(session_id, name, **arguments)

    def branches(self, session_id: str) -> "tuple[Branch, ...]":
        return self.at(session_id).branches(session_id)

    def take(self, session_id: str, branch_id: int) -> Trace:
        return self.at(session_id).take(session_id, branch_id)

    def probe_branch(self, session_id: str, branch_id: int, name: str, **arguments: Any) -> Any:
        return self.at(session_id).probe_branch(session_id, branch_id, name, **arguments)

    def grid(
        self, session_id: str, experiment: Experiment, overrides: Sequence[Mapping[str, Any]]
    ) -> "Iterator[GridResult]":
        return self.at(session_id).grid(session_id, experiment, overrides)

    def complete(self, experiment: Experiment) -> Trace:
        """As `Runtime.complete`; a model that is not here is loaded, and waited for."""
        return self.hand.begin(experiment.model).runtime.complete(experiment)

    def ask(self, source: dict[str, Any], name: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        """As `Runtime.ask`, on the model that the experiment or the trace names."""
        return self.hand.begin(model_of(source)).runtime.ask(source, name, arguments)


def model_of(source: Any) -> str:
    """The model that a decoded experiment or trace names; "" where it names none."""
    experiment = source.get("experiment") if is_trace(source) else source
    named = experiment.get("model") if isinstance(experiment, dict) else None
    return named if isinstance(named, str) else ""
