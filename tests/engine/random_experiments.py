"""Hypothesis strategies for valid experiments, as the JSON that `parse_experiment` takes; every field occurs."""

from collections.abc import Callable, Iterator
from typing import Any, get_args

from hypothesis import strategies as st
from pydantic import BaseModel

from engine.experiment import TRANSFORMERS_ORDER, Experiment, Mistake
from engine.link import Link
from engine.values import Strategy

MODELS = ("tiny", "smollm2-135m-instruct")
TOOLS = ("calculator", "clock", "units", "elements")

Draw = Callable[[st.SearchStrategy[Any]], Any]

TEXTS = st.text(max_size=60) | st.sampled_from(
    ["", "What is the capital of France?", "<|im_end|>", "\x00\u202e👩‍👩‍👧", '{"a": 1}\n']
)
SOME = TEXTS.filter(bool)
IDS = st.integers(0, 2**31 - 1)
FRACTIONS = st.floats(0, 1)


def _kept(draw: Draw, fields: dict[str, st.SearchStrategy[Any]]) -> dict[str, Any]:
    """A value for some of the fields; the others keep their default."""
    return {name: draw(values) for name, values in fields.items() if draw(st.booleans())}


@st.composite
def experiments(draw: Draw) -> dict[str, Any]:
    """Any mixture of fields that go together."""
    raw = draw(st.integers(0, 4)) == 0
    made: dict[str, Any] = {"version": 1, "model": draw(st.sampled_from(MODELS))}
    made |= _kept(
        draw, {"obey_marks_in_content": st.booleans(), "clock": st.datetimes().map(lambda t: f"{t.isoformat()}Z")}
    )
    if raw:
        made["prompt"] = draw(TEXTS)
    else:
        message = st.fixed_dictionaries(
            {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": TEXTS}
        )
        made["messages"] = draw(st.lists(message, min_size=1, max_size=5))
        made |= _kept(
            draw,
            {
                "follow_ups": st.lists(TEXTS, max_size=3),
                "tools": st.lists(st.sampled_from(TOOLS), max_size=4),
                "tool_choice": st.sampled_from(["auto", "required", "none"]),
            },
        )
    forces = bool(made.get("tools")) and made.get("tool_choice") == "required"
    if not forces and draw(st.booleans()):
        made["grammar"] = {"kind": draw(st.sampled_from(["json_schema", "regex", "lark"])), "source": draw(SOME)}
    made["sampling"] = draw(_samplings())
    made["stop"] = _kept(draw, {"max_new_tokens": st.integers(1, 100_000), "stop_strings": st.lists(SOME, max_size=3)})
    made["context"] = draw(_contexts(raw))
    forced = {"turn": st.integers(0, 9), "step": st.integers(0, 999), "token_id": IDS}
    made |= _kept(draw, {"forced": st.lists(st.fixed_dictionaries(forced), max_size=6)})
    mistakes = get_args(Mistake)
    if made["context"].get("strategy") == "sliding_window":
        mistakes = ("eos_not_watched",)
    return made | _kept(draw, {"mistake": st.sampled_from(mistakes)})


@st.composite
def _samplings(draw: Draw) -> dict[str, Any]:
    full = st.permutations(TRANSFORMERS_ORDER).map(list)
    return _kept(
        draw,
        {
            "do_sample": st.booleans(),
            "temperature": st.floats(0, 100),
            "top_k": st.integers(0, 2**31 - 1),
            "top_p": FRACTIONS,
            "min_p": FRACTIONS,
            "typical_p": st.floats(0, 1, exclude_min=True),
            "repetition_penalty": st.floats(0, 100, exclude_min=True),
            "no_repeat_ngram_size": st.integers(0, 100),
            "min_new_tokens": st.integers(0, 100_000),
            "bad_words": st.lists(SOME, max_size=3),
            "suppress_tokens": st.lists(IDS, max_size=5),
            "order": st.sampled_from(["transformers", "llama.cpp"]) | full,
            "seed": st.integers(0, 2**63 - 1),
        },
    )


@st.composite
def _contexts(draw: Draw, raw: bool) -> dict[str, Any]:
    known = ("none", "sliding_window") if raw else get_args(Strategy)
    strategy = draw(st.sampled_from(known))
    made = _kept(draw, {"positions": st.sampled_from(["go_on", "restart"])})
    if strategy != "none" or draw(st.booleans()):
        made |= {"strategy": strategy, "max_tokens": draw(st.integers(1, 100_000))}
    return made


@st.composite
def places(draw: Draw) -> dict[str, Any]:
    """The fields of a link besides its experiment."""
    count = st.integers(0, 2**31 - 1)
    names = {name: st.from_regex(r"[a-z][a-z0-9_-]{0,20}", fullmatch=True) for name in _NAMES}
    made = _kept(draw, {**dict.fromkeys(("turn", "layer", "head", "note"), count), **names})
    return made | draw(st.sampled_from([{}, {"step": draw(count)}, {"position": draw(count)}]))


_NAMES = ("figure", "operation", "station", "language", "lesson")


def links() -> st.SearchStrategy[Link]:
    """Valid links of valid experiments."""
    return st.builds(
        lambda experiment, place: Link(experiment=Experiment.model_validate(experiment), **place),
        experiments(),
        places(),
    )


def paths(kind: type[BaseModel], before: str = "") -> Iterator[str]:
    """Every field of a value and of the values in it, as paths."""
    for name, field in kind.model_fields.items():
        yield f"{before}{name}"
        for part in _models(field.annotation):
            yield from paths(part, f"{before}{name}.")


def changed(value: BaseModel, before: str = "") -> Iterator[str]:
    """The fields of a value, and of the values in it, that do not have their default."""
    for name, field in type(value).model_fields.items():
        now = getattr(value, name)
        if field.is_required() or now != field.default:
            yield f"{before}{name}"
        for part in now if isinstance(now, tuple) else (now,):
            if isinstance(part, BaseModel):
                yield from changed(part, f"{before}{name}.")


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
