"""Any valid experiment goes through the form and back as it is, also by way of a browser and beside a change."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from components.compose import OFF, TOOLS, compose, form_values, unchanged
from engine.experiment import Experiment, parse_experiment
from tests.components.test_entries import ENTRIES
from tests.engine.random_experiments import MODELS, SOME, experiments

DEFAULT = Experiment(version=1, model=MODELS[0], prompt="")

#: A value that differs from every one that the field may have had.
CHANGES = {"seed": lambda seed: 0 if seed else 1, "max_new_tokens": lambda most: 1 if most > 1 else 2}


def in_browser(form: dict[str, Any]) -> dict[str, Any]:
    """As a browser gives it back: numbers are floats, a text field knows one line end."""
    values: dict[str, Any] = json.loads(json.dumps(form), parse_int=float)
    ends = {name: now.replace("\r\n", "\n").replace("\r", "\n") for name, now in values.items() if type(now) is str}
    return values | ends


def composed(form: dict[str, Any], shown: Experiment, given: Experiment) -> Experiment:
    """What the form makes with the messages of the experiment, and what the form has no field for."""
    messages = [message.model_dump() for message in given.messages or ()]
    if given.prompt is not None:
        messages = [{"role": "user", "content": given.prompt}]
    data = compose(form, shown=shown, model=given.model, messages=messages)
    more = given.model_dump(include={"follow_ups", "forced"})
    return parse_experiment(data | more, models=MODELS, tools=TOOLS)


@st.composite
def with_entries(draw: Any) -> Experiment:
    """Any experiment, its stop strings and banned words full of what a line of text cannot hold as it is."""
    data = draw(experiments())
    data["sampling"]["bad_words"], data["stop"]["stop_strings"] = draw(ENTRIES), draw(ENTRIES)
    return Experiment.model_validate(data)


@st.composite
def shown_whole(draw: Any) -> Experiment:
    """An experiment of which the form shows all: no cut that is off by a number, tools in the form's order, at most
    one system message, in front.
    """
    data = draw(with_entries()).model_dump()
    data["sampling"] |= {name: None for name, off in OFF.items() if data["sampling"][name] == off}
    data["tools"] = [name for name in TOOLS if name in data["tools"]]
    if data["messages"]:
        system = [{"role": "system", "content": draw(SOME)}] if draw(st.booleans()) else []
        data["messages"] = system + [one for one in data["messages"] if one["role"] != "system"]
        data["messages"] = data["messages"] or [{"role": "user", "content": "?"}]
    return Experiment.model_validate(data)


@settings(deadline=None)
@given(shown_whole())
def test_what_the_form_shows_is_the_whole_experiment(asked: Experiment) -> None:
    assert composed(form_values(asked), DEFAULT, asked) == asked


@settings(deadline=None)
@given(with_entries())
def test_any_experiment_comes_back_from_a_browser_as_it_was(asked: Experiment) -> None:
    form = in_browser(form_values(asked))
    assert unchanged(form, asked)
    assert composed(form, asked, asked) == asked


@settings(deadline=None)
@given(with_entries(), st.sampled_from(["seed", "max_new_tokens"]))
def test_a_changed_setting_changes_that_setting_alone(asked: Experiment, name: str) -> None:
    part = "sampling" if name == "seed" else "stop"
    value = CHANGES[name](getattr(getattr(asked, part), name))
    form = in_browser(form_values(asked)) | {name: float(value)}
    assert not unchanged(form, asked)
    after = getattr(asked, part).model_copy(update={name: value})
    assert composed(form, asked, asked) == asked.model_copy(update={part: after})


@settings(max_examples=20, deadline=None)
@given(st.integers(2**53, 2**63 - 1))
def test_a_seed_keeps_every_digit_beside_a_change(seed: int) -> None:
    asked = Experiment(version=1, model=MODELS[0], prompt="", sampling={"seed": seed})
    form = in_browser(form_values(asked)) | {"temperature": 0.5}
    assert composed(form, asked, asked).sampling.seed == seed


def test_a_line_end_added_to_a_text_is_a_change() -> None:
    asked = Experiment(version=1, model=MODELS[0], messages=[{"role": "system", "content": "Be brief."}])
    form = form_values(asked) | {"system_prompt": "Be brief.\n"}
    assert not unchanged(form, asked)
    assert composed(form, asked, asked).messages[0].content == "Be brief.\n"


def test_a_number_of_any_size_is_compared() -> None:
    """A browser holds one of 400 digits as infinity."""
    asked = Experiment(version=1, model=MODELS[0], prompt="", context={"max_tokens": 2**63 - 1})
    assert unchanged(form_values(asked), asked)
    assert not unchanged(form_values(asked) | {"max_tokens": 5}, asked)
    assert not unchanged(form_values(asked) | {"max_tokens": 10**400}, asked)
    assert not unchanged(form_values(DEFAULT) | {"seed": 10**400}, DEFAULT)


def test_a_tool_switched_on_or_off_leaves_the_others_in_their_order() -> None:
    """A record may tell of a tool that is not known here."""
    fields = {"messages": [{"role": "user", "content": "?"}], "tools": ["units", "abacus", "clock", "calculator"]}
    asked = Experiment(version=1, model=MODELS[0], **fields)
    form = form_values(asked) | {"tool_clock": False, "tool_elements": True}
    assert composed(form, asked, asked).tools == ("units", "calculator", "elements")
