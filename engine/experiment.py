"""What to run: one `Experiment`, a small frozen value that is also the JSON of links, lessons and the API.

Every value that comes from outside goes through `parse_experiment`: unknown fields, non-finite numbers,
out-of-range values, unknown models and unknown tools are refused with the field's path and what is allowed.
"""

import json
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)

from engine.said import Said, english, said
from engine.values import (
    LLAMA_CPP_ORDER,
    SAMPLING_ONLY,
    TRANSFORMERS_ORDER,
    BadWord,
    ClockTime,
    Context,
    ExperimentError,
    GrammarSource,
    MessageText,
    ProcessorName,
    StopText,
    TokenId,
    Value,
    replace_lone_surrogates,
    short,
)

__all__ = [
    "LLAMA_CPP_ORDER",
    "MAX_JSON_BYTES",
    "SAMPLING_ONLY",
    "TRANSFORMERS_ORDER",
    "Context",
    "Experiment",
    "ExperimentError",
    "Forced",
    "Grammar",
    "Message",
    "Mistake",
    "ProcessorName",
    "Sampling",
    "Stop",
    "decoded",
    "fault",
    "first_error",
    "parse_experiment",
    "replace_lone_surrogates",
]

MAX_JSON_BYTES = 1_000_000


def _kind_of_order(value: Any) -> str:
    return "a list" if isinstance(value, list | tuple) else "a name"


NamedOrder = Annotated[Literal["transformers", "llama.cpp"], Tag("a name")]
OwnOrder = Annotated[
    tuple[ProcessorName, ...], Field(max_length=len(TRANSFORMERS_ORDER), fail_fast=True), Tag("a list")
]
#: What is wrong with an order is said of the kind that was meant.
Order = Annotated[NamedOrder | OwnOrder, Discriminator(_kind_of_order)]


class Message(Value):
    role: Literal["system", "user", "assistant", "tool"]
    content: MessageText


class Grammar(Value):
    kind: Literal["json_schema", "regex", "lark"]
    source: GrammarSource


class Sampling(Value):
    """The settings of the processor chain and of the draw; each default leaves the logits as they are."""

    do_sample: bool = True
    temperature: Annotated[float, Field(ge=0, le=100)] = 1.0
    top_k: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    typical_p: Annotated[float, Field(gt=0, le=1)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=100)] = 1.0
    no_repeat_ngram_size: Annotated[int, Field(ge=0, le=100)] = 0
    min_new_tokens: Annotated[int, Field(ge=0, le=100_000)] = 0
    bad_words: Annotated[tuple[BadWord, ...], Field(max_length=64, fail_fast=True)] = ()
    suppress_tokens: Annotated[tuple[TokenId, ...], Field(max_length=1_000, fail_fast=True)] = ()
    order: Order = "transformers"
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0

    @property
    def greedy(self) -> bool:
        """True when the best token is taken: sampling is off, or the temperature is 0."""
        return not self.do_sample or self.temperature == 0

    @property
    def order_names(self) -> tuple[ProcessorName, ...]:
        """The order as names."""
        if self.order == "transformers":
            return TRANSFORMERS_ORDER
        if self.order == "llama.cpp":
            return LLAMA_CPP_ORDER
        return self.order

    @property
    def switched_on(self) -> frozenset[ProcessorName]:
        """Processors that these settings ask for, by the rules of `generate` (a neutral value adds no processor)."""
        asked: dict[ProcessorName, bool] = {
            "repetition_penalty": self.repetition_penalty != 1.0,
            "no_repeat_ngram_size": self.no_repeat_ngram_size > 0,
            "bad_words": bool(self.bad_words),
            "min_new_tokens": self.min_new_tokens > 0,
            "suppress_tokens": bool(self.suppress_tokens),
            "temperature": self.temperature != 1.0,
            "top_k": bool(self.top_k),
            "top_p": self.top_p is not None and self.top_p < 1.0,
            "min_p": bool(self.min_p),
            "typical_p": self.typical_p is not None and self.typical_p < 1.0,
        }
        return frozenset(name for name, on in asked.items() if on and not (self.greedy and name in SAMPLING_ONLY))

    @model_validator(mode="after")
    def _order_is_complete(self) -> "Sampling":
        if len(set(self.order_names)) != len(self.order_names):
            raise ValueError(said("order_twice"))
        _require_in_order(self.switched_on, self.order_names)
        return self


def _require_in_order(names: Collection[ProcessorName], order: Collection[ProcessorName]) -> None:
    missing = sorted(set(names) - set(order))
    if missing:
        raise ValueError(said("order_leaves_out", name=missing[0]))


class Stop(Value):
    max_new_tokens: Annotated[int, Field(ge=1, le=100_000)] = 64
    stop_strings: Annotated[tuple[StopText, ...], Field(max_length=16, fail_fast=True)] = ()


class Forced(Value):
    """A token that a person chose: it replaces the draw at that step of that turn."""

    turn: Annotated[int, Field(ge=0, lt=2**63)] = 0
    step: Annotated[int, Field(ge=0, lt=2**63)]
    token_id: TokenId


Mistake = Literal["mask_not_extended", "history_reencoded", "eos_not_watched"]


class Experiment(Value):
    """Everything that decides a run; the same experiment gives the same trace.

    `mistake` switches on one classic fault of hand-written loops, to watch what it does.
    `obey_marks_in_content` lets control marks typed inside a message act as control tokens, to see the harm.
    """

    version: Literal[1]
    model: str
    messages: Annotated[tuple[Message, ...], Field(min_length=1, max_length=1_000, fail_fast=True)] | None = None
    prompt: MessageText | None = None
    follow_ups: Annotated[tuple[MessageText, ...], Field(max_length=100, fail_fast=True)] = ()
    tools: Annotated[tuple[str, ...], Field(max_length=32, fail_fast=True)] = ()
    tool_choice: Literal["auto", "required", "none"] = "auto"
    clock: ClockTime = "2026-01-01T12:00:00Z"
    grammar: Grammar | None = None
    sampling: Sampling = Sampling()
    stop: Stop = Stop()
    context: Context = Context()
    forced: Annotated[tuple[Forced, ...], Field(max_length=10_000, fail_fast=True)] = ()
    obey_marks_in_content: bool = False
    mistake: Mistake | None = None

    @model_validator(mode="after")
    def _one_source_of_text(self) -> "Experiment":
        if (self.messages is None) == (self.prompt is None):
            raise ValueError(said("messages_or_prompt"))
        if self.prompt is not None and self.follow_ups:
            raise ValueError(said("follow_ups_need_messages"))
        if self.prompt is not None and self.context.strategy not in ("none", "sliding_window"):
            raise ValueError(said("strategy_needs_messages", strategy=self.context.strategy))
        if self.context.strategy == "sliding_window" and self.mistake in ("mask_not_extended", "history_reencoded"):
            raise ValueError(said("mistake_in_window", mistake=self.mistake))
        if self.prompt is not None and self.tools:
            raise ValueError(said("tools_need_messages"))
        if self.tools and self.tool_choice == "required":
            if self.grammar:
                raise ValueError(said("grammar_and_call"))
            _require_in_order(["grammar"], self.sampling.order_names)
        if self.grammar:
            _require_in_order(["grammar"], self.sampling.order_names)
        return self

    @property
    def processors(self) -> tuple[ProcessorName, ...]:
        """Names of the processors that run, in order."""
        asked = self.sampling.switched_on | ({"grammar"} if self.grammar else set())
        return tuple(name for name in self.sampling.order_names if name in asked)

    def forced_token(self, turn: int, step: int) -> int | None:
        """The token id that a person chose at this step, or None."""
        return next((item.token_id for item in self.forced if (item.turn, item.step) == (turn, step)), None)


def parse_experiment(
    source: str | bytes | dict[str, Any], *, models: Collection[str], tools: Collection[str] = ()
) -> Experiment:
    """Validate JSON text or a decoded object.

    `models` and `tools` are the names that may appear. Raises `ExperimentError` with the field's path.
    """
    if isinstance(source, str | bytes) and len(source) > MAX_JSON_BYTES:
        raise ExperimentError("", said("experiment_bytes", most=MAX_JSON_BYTES, count=len(source)))
    data = decoded(source) if isinstance(source, str | bytes) else source
    if not isinstance(data, dict):
        raise ExperimentError("", said("experiment_object"))
    _check_size(data)
    try:
        experiment = Experiment.model_validate(data)
    except ValidationError as error:
        raise first_error(error) from None
    if experiment.model not in models:
        allowed = ", ".join(sorted(models))
        raise ExperimentError("model", said("unknown_model", got=short(experiment.model), allowed=allowed))
    for index, name in enumerate(experiment.tools):
        if name not in tools:
            allowed = ", ".join(sorted(tools)) or said("none")
            raise ExperimentError(f"tools[{index}]", said("unknown_tool", got=short(name), allowed=allowed))
    return experiment


def decoded(source: str | bytes) -> Any:
    """JSON text as plain values. Raises `ExperimentError`."""
    try:
        return json.loads(source)
    except RecursionError:
        raise ExperimentError("", said("json_nested")) from None
    except ValueError as error:
        raise ExperimentError("", said("json_invalid", error=error)) from None


def _check_size(data: Any) -> None:
    """Refuse decoded values that no JSON text of the allowed size can hold; they may come from anywhere."""
    size, waiting = 0, [data]
    while waiting and size <= MAX_JSON_BYTES:
        value = waiting.pop()
        size += len(value) if isinstance(value, str | list | tuple | dict) else 1
        if isinstance(value, list | tuple | dict):
            waiting += [*value, *value.values()] if isinstance(value, dict) else value
    if size > MAX_JSON_BYTES:
        raise ExperimentError("", said("experiment_larger", most=MAX_JSON_BYTES))


def first_error(error: ValidationError) -> ExperimentError:
    """The first error of pydantic as one line: a path, and what is allowed there."""
    detail = error.errors(include_url=False)[0]
    unknown = detail["type"] == "extra_forbidden"
    *parents, last = detail["loc"] or ("",)
    # Kinds of a union appear in the location as words or type expressions; they are no part of the user's path. The
    # name of an unknown field may be anything.
    location = [part for part in parents if isinstance(part, int) or part.isidentifier()]
    if unknown:
        location.append(repr(str(last)[:60])[1:-1] or repr(""))
    elif isinstance(last, int) or last.isidentifier():
        location.append(last)
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
    if unknown:
        return ExperimentError(path, said("unknown_field"))
    if detail["type"] == "value_error":
        return ExperimentError(path, detail["ctx"]["error"].args[0])
    return ExperimentError(path, fault(detail, short(detail["input"])))


def fault(detail: Mapping[str, Any], got: str) -> Said:
    """What pydantic found wrong with a value, as far as possible in its own words."""
    key = f"field_{detail['type']}"
    if key not in english():
        return said("field_other", detail=detail["msg"], got=got)
    values = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in detail.get("ctx", {}).items()
    }
    return said(key, **values) if detail["type"] == "missing" else said(key, **values, got=got)
