"""From what stands in the form to an experiment: pure functions on plain values."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from components.entries import entries_of, text_of
from engine.dialogue import messages_of
from engine.experiment import Experiment
from engine.facts import ModelFacts
from engine.trace import Trace

#: What a field shows for a cut that is off. A number field without a value says 0 once it is on the page.
OFF = {"top_k": 0, "top_p": 1, "min_p": 0, "typical_p": 1}

#: New tokens of the answer that is made for comparison, without a chat template.
RAW_TOKENS = 40

#: The tools that the form offers.
TOOLS = ("calculator", "clock", "units", "elements")


def compose(
    form: Mapping[str, Any], *, shown: Experiment, model: str, messages: Sequence[Mapping[str, str]]
) -> dict[str, Any]:
    """The experiment, as JSON values, that the form and the messages describe; not yet validated.

    `shown` is the experiment that the form was filled with: what nobody changed is taken from it.
    With the template switched off the last user message becomes the raw prompt.
    """
    form = _own_values(form, shown)
    experiment: dict[str, Any] = {
        "version": 1,
        "model": model,
        "sampling": {
            "do_sample": form["do_sample"],
            "temperature": form["temperature"],
            "top_k": _cut(form, shown, "top_k"),
            "top_p": _cut(form, shown, "top_p"),
            "min_p": _cut(form, shown, "min_p"),
            "typical_p": _cut(form, shown, "typical_p"),
            "repetition_penalty": form["repetition_penalty"],
            "no_repeat_ngram_size": whole(form["no_repeat_ngram_size"]),
            "min_new_tokens": whole(form["min_new_tokens"]),
            "bad_words": entries_of(form["bad_words"]),
            "suppress_tokens": [whole(part) for part in (form["suppress_tokens"] or "").replace(",", " ").split()],
            "order": (form["custom_order"] or "").split() if form["order"] == "custom" else form["order"],
            "seed": whole(form["seed"]),
        },
        "stop": {"max_new_tokens": whole(form["max_new_tokens"]), "stop_strings": entries_of(form["stop_strings"])},
        "context": {
            "strategy": form["strategy"],
            "max_tokens": whole(form["max_tokens"]) or None,
            "positions": form["positions"],
        },
        "obey_marks_in_content": form["obey_marks_in_content"],
        "mistake": None if form["mistake"] == "none" else form["mistake"],
        "tool_choice": form["tool_choice"],
        "clock": form["clock"],
    }
    if form["grammar_kind"] != "none":
        experiment["grammar"] = {"kind": form["grammar_kind"], "source": form["grammar_source"] or ""}
    if form["use_template"]:
        experiment["tools"] = _tools(form, shown)
        experiment["messages"] = _with_system(form, shown, messages)
    else:
        asked = (message["content"] for message in reversed(messages) if message["role"] == "user")
        experiment["prompt"] = next(asked, "")
    return _without_empty(experiment)


def form_values(experiment: Experiment) -> dict[str, Any]:
    """What the form shows for an experiment: the inverse of `compose`."""
    sampling = experiment.sampling
    custom = isinstance(sampling.order, tuple)
    return {
        "do_sample": sampling.do_sample,
        "temperature": sampling.temperature,
        **{name: off if getattr(sampling, name) is None else getattr(sampling, name) for name, off in OFF.items()},
        "repetition_penalty": sampling.repetition_penalty,
        "no_repeat_ngram_size": sampling.no_repeat_ngram_size,
        "min_new_tokens": sampling.min_new_tokens,
        "bad_words": text_of(sampling.bad_words),
        "suppress_tokens": ", ".join(map(str, sampling.suppress_tokens)),
        "order": "custom" if custom else sampling.order,
        "custom_order": " ".join(sampling.order_names),
        "seed": sampling.seed,
        "max_new_tokens": experiment.stop.max_new_tokens,
        "stop_strings": text_of(experiment.stop.stop_strings),
        "grammar_kind": experiment.grammar.kind if experiment.grammar else "none",
        "grammar_source": experiment.grammar.source if experiment.grammar else "",
        "strategy": experiment.context.strategy,
        "max_tokens": experiment.context.max_tokens or 0,
        "positions": experiment.context.positions,
        "use_template": experiment.messages is not None,
        "system_prompt": _system(experiment),
        "obey_marks_in_content": experiment.obey_marks_in_content,
        "mistake": experiment.mistake or "none",
        **{f"tool_{name}": name in experiment.tools for name in TOOLS},
        "tool_choice": experiment.tool_choice,
        "clock": experiment.clock,
    }


def form_part(experiment: Experiment) -> dict[str, Any]:
    """All that the form decides: everything but the messages and the tokens that a person chose."""
    data = experiment.model_dump(exclude={"messages", "prompt", "follow_ups", "forced"})
    system = [message.content for message in experiment.messages or () if message.role == "system"]
    return data | {"system": system, "raw": experiment.prompt is not None}


def unchanged(form: Mapping[str, Any], experiment: Experiment) -> bool:
    """True where the form shows what `form_values` gives, as a browser gives it back.

    Not every experiment can be composed of a form. What nobody changed is run as it is.
    """
    return all(_alike(form[name], shown) for name, shown in form_values(experiment).items())


def _own_values(form: Mapping[str, Any], experiment: Experiment) -> dict[str, Any]:
    """The form with the experiment's own values, to the last digit, wherever it still shows them."""
    own = {name: value for name, value in form_values(experiment).items() if _alike(form[name], value)}
    return {**form, **own}


def _alike(now: Any, shown: Any) -> bool:
    """Whether a field still has the value that was put there."""
    if isinstance(shown, str):
        return _in_browser(now or "") == _in_browser(shown)
    return isinstance(now, int | float) and _in_browser(now) == _in_browser(shown)


def _in_browser(value: Any) -> str | float:
    """A value as a browser holds it: whole numbers lose their last digits there, and line ends become one kind."""
    if isinstance(value, str):
        return value.replace("\r\n", "\n").replace("\r", "\n")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def first_question(experiment: Experiment) -> str:
    """The first message of a user, or the raw prompt."""
    asked = [message.content for message in experiment.messages or () if message.role == "user"]
    return asked[0] if asked else experiment.prompt or ""


def transcript(trace: Trace, turn: int | None = None) -> list[dict[str, str]]:
    """The messages of a turn (None: the newest) up to its newest user message, each earlier answer as the assistant
    message it became.
    """
    experiment = trace.experiment
    if experiment.prompt is not None:
        return [{"role": "user", "content": experiment.prompt}]
    messages = _messages(trace, max(trace.turns - 1, 0) if turn is None else turn)
    users = [index for index, message in enumerate(messages) if message["role"] == "user"]
    return messages[: users[-1] + 1] if users else messages


def as_raw_prompt(trace: Trace, turn: int) -> dict[str, Any]:
    """The question of a turn as a raw prompt, with the same settings, and no more tokens than a glance needs."""
    data = _raw(trace.experiment, transcript(trace, turn)[-1]["content"])
    data["stop"]["max_new_tokens"] = min(data["stop"]["max_new_tokens"], RAW_TOKENS)
    return data


def uses_template(now: ModelFacts, before: ModelFacts, *, asked: bool) -> bool:
    """Whether what ran on the model before is put into a template on this one: a model without one is given the bare
    question; one that has one gets its template back.
    """
    return now.chat_template is not None and (asked or before.chat_template is None)


def without_ids(form: dict[str, Any]) -> dict[str, Any]:
    """The form for another model: token ids say nothing in another vocabulary."""
    return form | {"suppress_tokens": ""}


def for_other_model(experiment: Experiment, now: ModelFacts, before: ModelFacts) -> dict[str, Any]:
    """The experiment for another model than it ran on: without token ids, which say nothing in another vocabulary."""
    chat, question = experiment.messages is not None, first_question(experiment)
    template = uses_template(now, before, asked=chat)
    data = _raw(experiment, question) if chat and not template else experiment.model_dump()
    if template and not chat:
        data |= {"messages": [{"role": "user", "content": question}], "prompt": None}
    sampling = data["sampling"] | {"suppress_tokens": ()}
    return data | {"model": now.model_id, "forced": (), "sampling": sampling}


def _raw(experiment: Experiment, question: str) -> dict[str, Any]:
    """The experiment with a raw prompt, and without what needs messages."""
    data = experiment.model_dump(exclude={"messages", "follow_ups", "forced", "tools"})
    if data["context"]["strategy"] not in ("none", "sliding_window"):
        del data["context"]
    return data | {"prompt": question}


def answered(trace: Trace) -> list[dict[str, str]]:
    """The messages with the newest answer, and the calls and results that led to it."""
    newest = trace.turns - 1
    return [*_messages(trace, newest), {"role": "assistant", "content": trace.answer(newest)}]


def _messages(trace: Trace, turn: int) -> list[dict[str, str]]:
    return [message.model_dump() for message in messages_of(trace, turn)]


def whole(value: Any) -> Any:
    """A whole number as int where the value is one; anything else stays for the validation to name."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    try:
        return int(value)
    except (TypeError, ValueError):
        return value


def _cut(form: Mapping[str, Any], shown: Experiment, name: str) -> Any:
    """The setting of a cut; None where it is off, unless the experiment says so with a number."""
    value = whole(form[name]) if name == "top_k" else form[name]
    off = value == OFF[name] and getattr(shown.sampling, name) != OFF[name]
    return None if off else value


def _tools(form: Mapping[str, Any], shown: Experiment) -> list[str]:
    """The tools that are switched on, in the order of the experiment: the model is told of them in that order."""
    known = [name for name in shown.tools if name in TOOLS]  # a record may tell of others
    further = [name for name in TOOLS if name not in known]
    return [name for name in (*known, *further) if form[f"tool_{name}"]]


def _system(experiment: Experiment) -> str:
    return next((message.content for message in experiment.messages or () if message.role == "system"), "")


def _with_system(
    form: Mapping[str, Any], shown: Experiment, messages: Sequence[Mapping[str, str]]
) -> list[dict[str, str]]:
    """The messages with the form's system prompt first and once; system messages that nobody changed stay in place."""
    given = [dict(message) for message in messages]
    others = [message for message in given if message["role"] != "system"]
    if form["system_prompt"] == _system(shown) and len(others) < len(given):
        return given
    return ([{"role": "system", "content": form["system_prompt"]}] if form["system_prompt"] else []) + others


def _without_empty(value: dict[str, Any]) -> dict[str, Any]:
    """Drop what the form leaves empty (None), so that the experiment's own defaults hold."""
    return {
        key: _without_empty(item) if isinstance(item, dict) else item for key, item in value.items() if item is not None
    }
