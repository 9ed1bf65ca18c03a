"""What the parts of an experiment are made of: bounded texts, numbers in range, frozen values, errors of one line."""

from datetime import datetime
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from engine.said import said

ProcessorName = Literal[
    "repetition_penalty",
    "no_repeat_ngram_size",
    "bad_words",
    "min_new_tokens",
    "suppress_tokens",
    "grammar",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
]

#: The order in which `generate` builds its chain; a grammar stands where `generate` puts custom processors.
TRANSFORMERS_ORDER: tuple[ProcessorName, ...] = get_args(ProcessorName)

#: llama.cpp's default: constraints and penalties first, then the cuts, temperature last.
LLAMA_CPP_ORDER: tuple[ProcessorName, ...] = (
    "bad_words",
    "min_new_tokens",
    "suppress_tokens",
    "grammar",
    "repetition_penalty",
    "no_repeat_ngram_size",
    "top_k",
    "typical_p",
    "top_p",
    "min_p",
    "temperature",
)

#: Processors that only run when a token is drawn at random, as in `generate`.
SAMPLING_ONLY: frozenset[ProcessorName] = frozenset({"temperature", "top_k", "top_p", "min_p", "typical_p"})


class ExperimentError(ValueError):
    """A bad experiment. `path` is the field ("sampling.top_p"), `message` says what is allowed there."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message


def replace_lone_surrogates(text: Any) -> Any:
    """Join surrogate pairs and turn each lone surrogate into U+FFFD; anything but a string is left alone."""
    if not isinstance(text, str) or not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def short(value: Any) -> str:
    try:
        text = repr(value)
    except RecursionError:
        return "values nested too deeply"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _moment(text: str) -> str:
    """A date and time with its offset to UTC, by ISO 8601."""
    try:
        zone = datetime.fromisoformat(text).utcoffset()
    except ValueError:
        zone = None
    if zone is None:
        raise ValueError(said("a_time", got=short(text)))
    return text


_Cleaned = BeforeValidator(replace_lone_surrogates)
MessageText = Annotated[str, StringConstraints(max_length=200_000), _Cleaned]
StopText = Annotated[str, StringConstraints(min_length=1, max_length=200), _Cleaned]
BadWord = Annotated[str, StringConstraints(min_length=1, max_length=100), _Cleaned]
GrammarSource = Annotated[str, StringConstraints(min_length=1, max_length=20_000), _Cleaned]
ClockTime = Annotated[str, StringConstraints(max_length=40), _Cleaned, AfterValidator(_moment)]
TokenId = Annotated[int, Field(ge=0, lt=2**31)]


class Value(BaseModel):
    """Base of what a person or a file describes: frozen, no unknown fields, finite numbers only."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Strategy = Literal["none", "drop_oldest", "keep_system", "drop_middle", "sliding_window", "summary"]


class Context(Value):
    """What leaves the context where the rendered prompt is longer than `max_tokens`; "none" refuses such a prompt.

    `positions` says how the tokens that stay in a sliding window are counted.
    """

    strategy: Strategy = "none"
    max_tokens: Annotated[int, Field(ge=1, lt=2**63)] | None = None
    positions: Literal["go_on", "restart"] = "go_on"

    @model_validator(mode="after")
    def _a_strategy_has_a_limit(self) -> "Context":
        if self.strategy != "none" and self.max_tokens is None:
            raise ValueError(said("strategy_needs_limit", strategy=self.strategy))
        return self
