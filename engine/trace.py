"""What happened: the events of a run and the `Trace` they make, as frozen values, and their JSON.

Arrays are numpy in memory and lists in JSON; bytes are lists of integers; a non-finite number is null.
Positions count from 0 over the whole context, probabilities lie in [0, 1], entropy is in nats, sizes are in
bytes, times in seconds.
"""

import dataclasses
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from engine.experiment import Experiment
from engine.facts import ModelFacts

TRACE_VERSION = 1

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]
Shape = tuple[int, ...]

StopReason = Literal["eos", "length", "stop_string", "tool_call", "grammar_end", "no_candidate", "cancelled", "error"]


@dataclass(frozen=True)
class Span:
    """A stretch [start, end) of the rendered text, in characters.

    `message` indexes the experiment's messages (follow-ups and answers count on); None marks what the template
    added on its own: a default system prompt, the generation prompt.
    """

    start: int
    end: int
    role: str
    message: int | None
    kind: Literal["scaffold", "content"]


@dataclass(frozen=True)
class Parted:
    """Where a newly rendered context stops matching the cache: the first position whose ids differ."""

    position: int
    cached_id: int
    new_id: int


@dataclass(frozen=True, eq=False)
class Rendered:
    """A turn's context as text and as n tokens."""

    kind: ClassVar[str] = "rendered"
    turn: int
    text: str
    spans: tuple[Span, ...]
    token_ids: Ints  # [n]
    span_index: Ints  # [n], index into spans; -1 for a token that the tokenizer put in (a BOS)
    pieces: tuple[str, ...]  # [n], as the vocabulary writes them
    token_bytes: tuple[bytes, ...]  # [n], the UTF-8 bytes each stands for
    special: Bools  # [n], True for a control token
    marks_in_content: int  # control marks typed inside messages; neutralised unless the experiment obeys them
    reused: int  # positions taken from the cache
    parted: Parted | None


@dataclass(frozen=True, eq=False)
class Prefilled:
    """Positions first … last were computed in one forward."""

    kind: ClassVar[str] = "prefilled"
    turn: int
    first: int
    last: int
    shapes: dict[str, Shape]  # input_ids, attention_mask, position_ids, logits, keys, values (of layer 0)
    kv_tokens: int
    kv_bytes: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Stage:
    """One processor's effect on the whole distribution. Stage 0 is the model's own logits ("logits")."""

    name: str
    parameters: dict[str, Any]
    kept: int  # tokens with a finite logit after it
    entropy: float  # nats, after it
    mass_removed: float  # probability, as it stood before, of the tokens that this stage cut


@dataclass(frozen=True, eq=False)
class Draw:
    """One random pick from the final distribution.

    torch draws by a race: token i arrives at time E_i / p_i with E_i exponential, and the earliest wins. The
    winning time T is independent of the winner and exponential with mean 1, so `u = low + (high - low) * exp(-T)`
    is a uniform number that picks the very same token on the cumulative line.
    """

    u: float
    low: float  # the drawn token's interval on the cumulative line, candidates by falling probability
    high: float
    drawn_id: int  # what the draw gave, also where a person chose otherwise
    race_time: float  # T, dimensionless
    runner_up_id: int | None
    runner_up_time: float | None


@dataclass(frozen=True, eq=False)
class EosScore:
    """The best-placed end-of-sequence token at a step."""

    token_id: int
    logit: float
    probability: float  # by the model's own logits
    rank: int  # 1 = best, by the model's own logits
    cut_by: str | None  # the stage that gave it −inf, None while it can still be drawn


@dataclass(frozen=True, eq=False)
class Stepped:
    """One token was chosen. c candidates are followed through s stages (stage 0 = the model's own logits)."""

    kind: ClassVar[str] = "stepped"
    turn: int
    step: int
    position: int
    token_id: int
    piece: str
    token_bytes: bytes
    special: bool
    forced: bool
    shapes: dict[str, Shape]  # what the forward that gave these logits was fed, and K/V after it
    stages: tuple[Stage, ...]  # [s]
    candidate_ids: Ints  # [c], by falling probability after the last stage, then by the model's own
    candidate_bytes: tuple[bytes, ...]  # [c]
    logits: Floats  # [s, c], −inf where cut
    probabilities: Floats  # [s, c], 0 where cut
    draw: Draw | None  # None when greedy
    eos: EosScore | None
    kv_tokens: int  # positions in the cache when the token was chosen
    kv_bytes: int
    seconds: float  # the forward; 0 for the first step of a turn, whose logits come from the prefill
    overhead_seconds: float  # everything else in the step
    text: str  # newly shown
    held_bytes: int  # bytes not yet shown: half a character, or what may become a stop string


@dataclass(frozen=True, eq=False)
class Truncated:
    """Messages left the context."""

    kind: ClassVar[str] = "truncated"
    turn: int
    strategy: str
    kept: tuple[int, ...]
    dropped: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ToolCalled:
    """A tool ran, or refused to."""

    kind: ClassVar[str] = "tool_called"
    turn: int
    name: str
    arguments: dict[str, Any]
    result: str | None
    error: str | None
    seconds: float


@dataclass(frozen=True, eq=False)
class Stopped:
    """A turn ended. `evidence` holds what decided it: an id, a string, a limit, a stage, a message."""

    kind: ClassVar[str] = "stopped"
    turn: int
    reason: StopReason
    evidence: dict[str, Any]
    text: str  # shown at the end: what was held back and turned out harmless


Event = Rendered | Prefilled | Stepped | Truncated | ToolCalled | Stopped
EVENT_TYPES: dict[str, type] = {cls.kind: cls for cls in typing.get_args(Event)}


@dataclass(frozen=True, eq=False)
class Trace:
    """An experiment, the model it ran on, and the events so far."""

    experiment: Experiment
    facts: ModelFacts
    versions: dict[str, str]
    events: tuple[Event, ...] = field(default=())

    def of(self, kind: type, turn: int | None = None) -> Iterator[Any]:
        """The events of one class, of one turn or of all."""
        return (event for event in self.events if isinstance(event, kind) and turn in (None, event.turn))

    @property
    def turns(self) -> int:
        """Turns that were begun."""
        return sum(1 for _ in self.of(Rendered))

    def rendered(self, turn: int) -> Rendered | None:
        return next(self.of(Rendered, turn), None)

    def prefilled(self, turn: int) -> Prefilled | None:
        return next(self.of(Prefilled, turn), None)

    def steps(self, turn: int) -> tuple[Stepped, ...]:
        return tuple(self.of(Stepped, turn))

    def stopped(self, turn: int) -> Stopped | None:
        return next(self.of(Stopped, turn), None)

    def answer(self, turn: int) -> str:
        """The text shown for a turn so far."""
        stopped = self.stopped(turn)
        return "".join(step.text for step in self.steps(turn)) + (stopped.text if stopped else "")


def trace_to_json(trace: Trace) -> dict[str, Any]:
    """The trace as plain JSON values."""
    return {
        "version": TRACE_VERSION,
        "experiment": trace.experiment.model_dump(mode="json"),
        "facts": to_json(trace.facts),
        "versions": trace.versions,
        "events": [event_to_json(event) for event in trace.events],
    }


def trace_from_json(data: dict[str, Any]) -> Trace:
    """The inverse of `trace_to_json`. Raises ValueError on another version, KeyError or TypeError on missing parts."""
    if data.get("version") != TRACE_VERSION:
        raise ValueError(f"this trace has version {data.get('version')!r}; this program reads version {TRACE_VERSION}")
    return Trace(
        experiment=Experiment.model_validate(data["experiment"]),
        facts=_from_json(ModelFacts, data["facts"]),
        versions=dict(data["versions"]),
        events=tuple(event_from_json(event) for event in data["events"]),
    )


def event_to_json(event: Event) -> dict[str, Any]:
    return {"kind": event.kind, **to_json(event)}


def event_from_json(data: dict[str, Any]) -> Event:
    fields = dict(data)
    kind = fields.pop("kind")
    if kind not in EVENT_TYPES:
        raise ValueError(f"unknown event kind {kind!r}; known: {', '.join(EVENT_TYPES)}")
    event: Event = _from_json(EVENT_TYPES[kind], fields)
    return event


def to_json(value: Any) -> Any:
    """Plain JSON values of a dataclass, array or scalar."""
    if dataclasses.is_dataclass(value):
        return {item.name: to_json(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        return to_json(value.tolist()) if value.dtype.kind != "f" else _floats(value)
    if isinstance(value, bytes):
        return list(value)
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value


def _floats(array: npt.NDArray[Any]) -> Any:
    """float32 numbers in the fewest digits that read back to the same float32."""
    if array.ndim > 1:
        return [_floats(row) for row in array]
    return [float(str(number)) if np.isfinite(number) else None for number in array]


def _from_json(kind: Any, value: Any) -> Any:
    """Read `value` back as the annotated type `kind`."""
    origin = typing.get_origin(kind)
    if kind in (Ints, Floats, Bools):
        dtype = {Ints: np.int32, Floats: np.float32, Bools: np.bool_}[kind]
        return np.array(_null_to_minus_infinity(value) if kind == Floats else value, dtype=dtype)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        names = [item.name for item in dataclasses.fields(kind)]
        unknown = set(value) - set(names)
        if unknown:
            raise ValueError(f"unknown field {sorted(unknown)[0]!r} in a {typing.cast(type, kind).__name__}")
        return typing.cast(Any, kind)(**{name: _from_json(hints[name], value[name]) for name in names})
    if kind is bytes:
        return bytes(value)
    if origin is tuple:
        inner = typing.get_args(kind)[0]
        return tuple(_from_json(inner, item) for item in value)
    if origin is dict and typing.get_args(kind)[1] == Shape:
        return {key: tuple(shape) for key, shape in value.items()}
    if origin is types.UnionType:
        inner = next(item for item in typing.get_args(kind) if item is not types.NoneType)
        return None if value is None else _from_json(inner, value)
    if kind is float:
        return float("-inf") if value is None else float(value)
    return value


def _null_to_minus_infinity(value: Any) -> Any:
    if isinstance(value, list):
        return [_null_to_minus_infinity(item) for item in value]
    return -np.inf if value is None else value
