"""What a lesson claims of its run, and whether that is so: each claim looks up one value and says what it must be."""

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from engine import lesson_paths
from engine.lesson_paths import PathError, look
from engine.probe_json import encode
from engine.trace import ToolCalled, Trace
from engine.values import Value

Plain = bool | int | float | str | None

_OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
_SUM = re.compile(r"(\w+) ([-+*/]) (\w+)")

#: What `about` allows where `within` is not said.
WITHIN = 1e-3


class Claim(Value):
    """One value of the run and what it must be.

    `of` says where to look: "trace", the name of a probe, or "claims", where `at` reckons with two others (`a - b`).
    """

    of: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    arguments: dict[str, Any] = Field(default={}, max_length=12)
    at: str = Field(min_length=1, max_length=200)
    is_: Plain | tuple[Plain, ...] = Field(default=None, alias="is")
    about: float | None = None
    within: float | None = Field(default=None, gt=0)
    at_least: float | None = None
    at_most: float | None = None
    contains: Plain = None

    @field_validator("at", mode="before")
    @classmethod
    def _a_number_is_a_path_too(cls, value: Any) -> Any:
        return str(value) if type(value) is int else value

    @model_validator(mode="after")
    def _it_can_fail(self) -> Self:
        said = self.model_fields_set & {"is_", "about", "at_least", "at_most", "contains"}
        if not said:
            raise ValueError("say what it must be: is, about (with within), at_least, at_most or contains")
        if len(said) > 1 and said != {"at_least", "at_most"}:
            raise ValueError("say it in one way: is, about, contains, or at_least and at_most")
        if self.within is not None and self.about is None:
            raise ValueError("'within' goes with 'about'")
        if self.of == "claims":
            if not _SUM.fullmatch(self.at):
                raise ValueError(f"two claims with + - * or / between them are wanted, as in 'a - b', got {self.at!r}")
        else:
            lesson_paths.check(self.at)
        if self.of in ("claims", "trace") and self.arguments:
            raise ValueError(f"'arguments' are for a probe, not for {self.of!r}")
        return self

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the claims that it reckons with."""
        match = _SUM.fullmatch(self.at) if self.of == "claims" else None
        return (match[1], match[3]) if match else ()

    def says(self) -> str:
        """The condition in words."""
        if "is_" in self.model_fields_set:
            return f"is {self.is_!r}"
        if self.about is not None:
            return f"about {self.about} within {self.within or WITHIN}"
        if "contains" in self.model_fields_set:
            return f"contains {self.contains!r}"
        bounds = (("at least", self.at_least), ("at most", self.at_most))
        return " and ".join(f"{name} {bound}" for name, bound in bounds if bound is not None)

    def holds(self, value: Any) -> bool:
        """True where the value is what the claim says."""
        if "is_" in self.model_fields_set:
            wanted = list(self.is_) if isinstance(self.is_, tuple) else self.is_
            return _equal(value, wanted)
        if "contains" in self.model_fields_set:
            if isinstance(value, str):
                return isinstance(self.contains, str) and self.contains in value
            return isinstance(value, list) and any(_equal(item, self.contains) for item in value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if self.about is not None:
            return abs(value - self.about) <= (self.within or WITHIN)
        low = -math.inf if self.at_least is None else self.at_least
        return low <= value <= (math.inf if self.at_most is None else self.at_most)


@dataclass(frozen=True)
class Finding:
    """What a claim found, or why it found nothing."""

    value: Any
    holds: bool
    error: str | None = None


#: Asks a probe by its name; raises `PathError` where there is no answer.
Ask = Callable[[str, Mapping[str, Any]], Any]


def find(claims: Mapping[str, Claim], trace: Trace, ask: Ask) -> dict[str, Finding]:
    """What each claim finds in a trace and in the answers of probes, in the order in which they stand."""
    story, answers = told(trace), dict[str, Any]()

    def answer(claim: Claim) -> Any:
        key = f"{claim.of} {sorted(claim.arguments.items())}"
        if key not in answers:
            answers[key] = encode(ask(claim.of, claim.arguments))
        return answers[key]

    values: dict[str, Any] = {}
    findings = {}
    for name, claim in claims.items():
        try:
            values[name] = _value(claim, story, answer, values)
        except PathError as error:
            findings[name] = Finding(None, False, str(error))
        else:
            findings[name] = Finding(values[name], claim.holds(values[name]))
    return findings


def told(trace: Trace) -> dict[str, Any]:
    """A trace as claims see it: `experiment`, `facts`, and `turns` with what happened in each."""
    return {
        "experiment": trace.experiment.model_dump(mode="json"),
        "facts": encode(trace.facts),
        "turns": [_turn(trace, turn) for turn in range(trace.turns)],
    }


def _turn(trace: Trace, turn: int) -> dict[str, Any]:
    return {
        "rendered": encode(trace.rendered(turn)),
        "truncated": encode(trace.truncated(turn)),
        "prefilled": encode(trace.prefilled(turn)),
        "steps": [encode(step) for step in trace.steps(turn)],
        "calls": [encode(call) for call in trace.of(ToolCalled, turn)],
        "stopped": encode(trace.stopped(turn)),
        "answer": trace.answer(turn),
    }


def _value(claim: Claim, story: Mapping[str, Any], answer: Callable[[Claim], Any], values: Mapping[str, Any]) -> Any:
    if claim.of == "trace":
        return look(story, claim.at)
    if claim.of != "claims":
        return look(answer(claim), claim.at)
    match = _SUM.fullmatch(claim.at)
    assert match is not None
    try:
        return _OPERATORS[match[2]](values[match[1]], values[match[3]])
    except KeyError as error:
        raise PathError(f"{error} has no value") from None
    except (TypeError, ZeroDivisionError):
        raise PathError(f"{claim.at} cannot be reckoned with these values") from None


def _equal(value: Any, wanted: Any) -> bool:
    if isinstance(value, list) and isinstance(wanted, list):
        return len(value) == len(wanted) and all(map(_equal, value, wanted))
    if isinstance(value, float) and type(wanted) in (int, float):
        return math.isclose(value, wanted, rel_tol=1e-6)
    return type(value) is type(wanted) and bool(value == wanted)
