"""The form and the experiment are two faces of one value."""

import pytest

from components.compose import compose, for_other_model, form_values, whole
from engine.experiment import Experiment, ExperimentError, parse_experiment
from tests.components.handmade import make_facts

MODEL = "tiny"
QUESTION = [{"role": "user", "content": "What is 2 + 2?"}]


def experiment(**fields: object) -> Experiment:
    return Experiment.model_validate({"version": 1, "model": MODEL, "messages": QUESTION, **fields})


EXPERIMENTS = {
    "defaults": experiment(),
    "everything set": experiment(
        messages=[{"role": "system", "content": "Be brief."}, *QUESTION],
        grammar={"kind": "regex", "source": "[0-9]+"},
        sampling={
            "do_sample": False, "temperature": 0.7, "top_k": 20, "top_p": 0.9, "min_p": 0.05, "typical_p": 0.8,
            "repetition_penalty": 1.1, "no_repeat_ngram_size": 3, "min_new_tokens": 2, "bad_words": ["four", " five"],
            "suppress_tokens": [1, 2], "order": "llama.cpp", "seed": 2**40,
        },
        stop={"max_new_tokens": 7, "stop_strings": ["\n\n", "END"]},
        obey_marks_in_content=True,
        mistake="eos_not_watched",
    ),
    "an order of one's own": experiment(sampling={"top_k": 5, "order": ["top_k", "temperature"]}),
    "no template": Experiment.model_validate({"version": 1, "model": MODEL, "prompt": QUESTION[0]["content"]}),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_form_and_back_gives_the_same_experiment(name: str) -> None:
    given = EXPERIMENTS[name]
    composed = compose(form_values(given), shown=experiment(), model=MODEL, messages=QUESTION)
    again = parse_experiment(composed, models=[MODEL])
    assert again == given


def test_a_cut_that_is_off_shows_a_number_and_every_number_field_has_one() -> None:
    """Gradio's number field without a value turns into 0 once it is shown, and a typical-p of 0 is refused."""
    form = form_values(experiment())
    assert (form["top_k"], form["top_p"], form["min_p"], form["typical_p"]) == (0, 1, 0, 1)
    assert not [name for name, value in form.items() if value is None]


@pytest.mark.parametrize(
    ("field", "typed", "path"),
    [
        ("temperature", -1, "sampling.temperature"),
        ("temperature", float("nan"), "sampling.temperature"),
        ("top_k", 1.5, "sampling.top_k"),
        ("top_p", 2, "sampling.top_p"),
        ("typical_p", 0, "sampling.typical_p"),
        ("seed", "abc", "sampling.seed"),
        ("max_new_tokens", 0, "stop.max_new_tokens"),
        ("suppress_tokens", "12, x", "sampling.suppress_tokens[1]"),
        ("stop_strings", "s" * 5_000, "stop.stop_strings[0]"),
        ("mistake", "unheard_of", "mistake"),
    ],
)
def test_what_cannot_be_is_named_by_its_field(field: str, typed: object, path: str) -> None:
    form = form_values(experiment()) | {field: typed}
    with pytest.raises(ExperimentError) as refused:
        parse_experiment(compose(form, shown=experiment(), model=MODEL, messages=QUESTION), models=[MODEL])
    assert refused.value.path == path


def test_for_another_model_a_chat_stays_one_where_there_is_a_template() -> None:
    own, bare, other = make_facts(), make_facts(chat_template=None), make_facts(model_id="other")
    chat = experiment(
        follow_ups=["and 3 + 3?"], tools=["clock"], forced=[{"step": 0, "token_id": 5}],
        sampling={"suppress_tokens": [1], "seed": 4}, context={"strategy": "drop_oldest", "max_tokens": 50},
    )  # fmt: skip
    kept = Experiment.model_validate(for_other_model(chat, other, own))
    left_out = {"model": "other", "forced": (), "sampling": chat.sampling.model_copy(update={"suppress_tokens": ()})}
    assert kept == chat.model_copy(update=left_out)
    raw = Experiment.model_validate(for_other_model(chat, make_facts(model_id="other", chat_template=None), own))
    assert (raw.prompt, raw.messages, raw.follow_ups, raw.tools) == ("What is 2 + 2?", None, (), ())
    assert (raw.context.strategy, raw.sampling.seed) == ("none", 4)
    text = EXPERIMENTS["no template"]
    assert Experiment.model_validate(for_other_model(text, other, own)).prompt == "What is 2 + 2?"
    back = Experiment.model_validate(for_other_model(text, other, bare))
    assert (back.prompt, [message.content for message in back.messages or ()]) == (None, ["What is 2 + 2?"])


def test_the_system_prompt_of_the_form_comes_first_and_once() -> None:
    form = form_values(experiment()) | {"system_prompt": "Be brief."}
    given = [{"role": "system", "content": "old"}, *QUESTION]
    messages = compose(form, shown=experiment(messages=given), model=MODEL, messages=given)["messages"]
    assert messages == [{"role": "system", "content": "Be brief."}, *QUESTION]


def test_numbers_from_the_page_are_whole_where_they_can_be() -> None:
    assert whole(20.0) == 20
    assert isinstance(whole(20.0), int)
    assert whole(1.5) == 1.5
    assert whole(None) is None
    assert whole(2**63 - 1) == 2**63 - 1
    assert whole("12") == 12
    assert whole("x") == "x"
