"""A conversation without a model: each forward can be watched, held and made to fail."""

import threading
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from engine.experiment import Experiment
from engine.facts import ModelFacts
from engine.trace import Event, Prefilled, Rendered, Stepped, Stopped, Trace
from tests.patience import PATIENCE

PREFILL_BYTES = 1_000
STEP_BYTES = 10

FACTS = ModelFacts(
    model_id="tiny", title="Tiny", architecture="Fake", layers=1, hidden_size=1, heads=1, kv_heads=1, head_dim=1,
    ffn_size=1, vocab_rows=10, vocab_base=10, vocab_with_special=10, context=1_000, parameters=1,
    tied_embeddings=True, dtype="float32", itemsize=4, device="cpu", layer_kinds=("full",), sliding_window=None,
    eos_ids=(0,), special_marks=(), chat_template=None,
)  # fmt: skip


def experiment(new_tokens: int = 5, *, content: str = "Hello", **fields: Any) -> Experiment:
    return Experiment.model_validate(
        {
            "version": 1,
            "model": "tiny",
            "messages": [{"role": "user", "content": content}],
            "stop": {"max_new_tokens": new_tokens},
            **fields,
        }
    )


def rendered(turn: int) -> Rendered:
    none = np.zeros(0, np.int32)
    return Rendered(turn, "", (), none, none, (), (), none.astype(bool), 0, 0, None)


def stepped(turn: int, step: int, token_id: int, *, forced: bool = False) -> Stepped:
    none = np.zeros((1, 0), np.float32)
    return Stepped(
        turn=turn, step=step, position=3 + step, token_id=token_id, piece=str(token_id), token_bytes=b"x",
        special=False, forced=forced, shapes={}, stages=(), candidate_ids=np.zeros(0, np.int32), candidate_bytes=(),
        logits=none, probabilities=none, draw=None, eos=None, kv_tokens=step, kv_bytes=0, seconds=0.0,
        overhead_seconds=0.0, text=str(token_id), held_bytes=0,
    )  # fmt: skip


class Lab:
    """What the fakes of one test share: who is inside the model, and what each forward has to wait for."""

    def __init__(self) -> None:
        self.inside = 0
        self.most_inside = 0
        self.threads: set[int] = set()
        self.forwards: list[str] = []  # content of the conversation's first message, one a forward
        self.made: list[FakeConversation] = []
        self.before_forward: Callable[[FakeConversation], None] = lambda conversation: None
        self._lock = threading.Lock()

    def conversation(
        self, loaded: Any, experiment: Experiment, *, cache_budget: int | None = None, prefixes: Any = None
    ) -> Any:
        """Stands in for the class `Conversation`."""
        made = FakeConversation(self, loaded, experiment)
        self.made.append(made)
        return made

    def forward(self, conversation: "FakeConversation") -> None:
        with self._lock:
            self.inside += 1
            self.most_inside = max(self.most_inside, self.inside)
        try:
            self.threads.add(threading.get_ident())
            self.forwards.append(conversation.name)
            self.before_forward(conversation)
        finally:
            with self._lock:
                self.inside -= 1

    @property
    def live_caches(self) -> int:
        return sum(conversation.cache_bytes > 0 for conversation in self.made)


class Gate:
    """Holds forwards of one conversation, the `at`-th counted from 1: says when it is inside, waits to be let go."""

    def __init__(self, lab: Lab, name: str, at: int) -> None:
        self.inside = threading.Event()
        self.open = threading.Event()
        self._name, self._at, self._seen = name, at, 0
        before = lab.before_forward

        def hold(conversation: FakeConversation) -> None:
            before(conversation)
            if conversation.name == self._name:
                self._seen += 1
                if self._seen == self._at:
                    self.inside.set()
                    assert self.open.wait(PATIENCE)

        lab.before_forward = hold


class FakeConversation:
    """The public face of `engine.conversation.Conversation`; token ids count up from the seed, modulo 10."""

    def __init__(self, lab: Lab, loaded: Any, experiment: Experiment) -> None:
        self._lab = lab
        self.trace = Trace(experiment, loaded.facts, {})
        self.cache_bytes = 0
        self.releases = 0
        self.name = experiment.messages[0].content if experiment.messages else ""

    @property
    def finished(self) -> bool:
        return self._stopped is not None and self.trace.turns > len(self.trace.experiment.follow_ups)

    @property
    def _stopped(self) -> Stopped | None:
        return self.trace.stopped(self.trace.turns - 1) if self.trace.turns else None

    def advance(self) -> tuple[Event, ...]:
        if self._stopped and self._stopped.reason == "cancelled":
            self._keep(len(self.trace.events) - 1)
        if self.finished:
            return ()
        self._lab.forward(self)
        turn = self.trace.turns - 1
        if turn < 0 or self._stopped:
            self.cache_bytes += PREFILL_BYTES
            return self._add(rendered(turn + 1), Prefilled(turn + 1, 0, 2, {}, 3, self.cache_bytes, 0.0))
        self.cache_bytes = (self.cache_bytes or PREFILL_BYTES) + STEP_BYTES
        step = len(self.trace.steps(turn))
        forced = self.trace.experiment.forced_token(turn, step)
        token = (self.trace.experiment.sampling.seed + step) % 10 if forced is None else forced
        events: tuple[Event, ...] = (stepped(turn, step, token, forced=forced is not None),)
        if step + 1 == self.trace.experiment.stop.max_new_tokens:
            events += (Stopped(turn, "length", {}, ""),)
        return self._add(*events)

    def back(self) -> bool:
        if not self.trace.turns or not self.trace.steps(self.trace.turns - 1):
            return False
        self._keep(len(self.trace.events) - (2 if self._stopped else 1))
        return True

    def force(self, step: int, token_id: int) -> None:
        while len(self.trace.steps(0)) > step:
            self.back()
        forced = [*self.trace.experiment.forced, {"turn": 0, "step": step, "token_id": token_id}]
        changed = self.trace.experiment.model_dump() | {"forced": forced}
        self.trace = replace(self.trace, experiment=Experiment.model_validate(changed))

    def say(self, text: str) -> None:
        said = (*self.trace.experiment.follow_ups, text)
        self.trace = replace(self.trace, experiment=self.trace.experiment.model_copy(update={"follow_ups": said}))

    def cancel(self, **evidence: object) -> None:
        if self.trace.turns and self._stopped is None:
            self._add(Stopped(self.trace.turns - 1, "cancelled", evidence, ""))

    def release(self) -> None:
        self.cache_bytes = 0
        self.releases += 1

    def _add(self, *events: Event) -> tuple[Event, ...]:
        self.trace = replace(self.trace, events=self.trace.events + events)
        return events

    def _keep(self, count: int) -> None:
        self.trace = replace(self.trace, events=self.trace.events[:count])


LOADED = SimpleNamespace(facts=FACTS)


def token_ids(trace: Trace, turn: int = 0) -> list[int]:
    return [step.token_id for step in trace.steps(turn)]


class Clock:
    """Time that passes when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def opened(runtime, new_tokens=5, *, content="Hello", **fields):
    session = runtime.open()
    runtime.start(session, experiment(new_tokens, content=content, **fields))
    return session


def settled(runtime):
    """Return when the worker has done what was queued before."""
    runtime.step(opened(runtime, content="settle"))
