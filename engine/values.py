"""Parts of an experiment that stand by themselves: the base of all, and what to do with a history that is too long."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Value(BaseModel):
    """Base of every part of an experiment: frozen, no unknown fields, finite numbers only."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Strategy = Literal["none", "drop_oldest", "keep_system", "drop_middle", "sliding_window", "summary"]


class Context(Value):
    """What leaves the context where the rendered prompt is longer than `max_tokens`; "none" refuses such a prompt.

    `positions` says how the tokens that stay in a sliding window are counted.
    """

    strategy: Strategy = "none"
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    positions: Literal["go_on", "restart"] = "go_on"

    @model_validator(mode="after")
    def _a_strategy_has_a_limit(self) -> "Context":
        if self.strategy != "none" and self.max_tokens is None:
            raise ValueError(f"the strategy {self.strategy!r} needs 'max_tokens'")
        return self
