import dataclasses

import numpy as np
import pytest

from components.compose import transcript
from components.prompt import panel as prompt
from components.prompt.compare import Answer, answer_of, compare_value
from components.visible import running_text
from engine.trace import Span, Stopped
from tests.components.handmade import PROMPT, make_experiment, make_facts, make_rendered, make_trace, make_view
from tests.components.reading import read, station


def test_parts_are_the_messages_in_order_and_add_up():
    rendered = make_rendered()
    parts = prompt.select(rendered)
    assert [(part.role, part.message, part.first, part.tokens) for part in parts] == [
        ("system", None, 0, 7),
        ("user", 0, 7, 10),
        ("assistant", None, 17, 4),
    ]
    assert sum(part.tokens for part in parts) == len(rendered.token_ids)
    assert [part.scaffold_tokens for part in parts] == [5, 5, 4]


def test_a_token_of_the_tokenizer_is_counted_apart():
    bare = make_rendered()
    rendered = dataclasses.replace(
        bare,
        token_ids=np.concatenate([[0], bare.token_ids]).astype(np.int32),
        span_index=np.concatenate([[-1], bare.span_index]).astype(np.int32),
        pieces=("<|endoftext|>", *bare.pieces),
        token_bytes=(b"<|endoftext|>", *bare.token_bytes),
        special=np.concatenate([[True], bare.special]),
    )
    parts = prompt.select(rendered)
    assert sum(part.tokens for part in parts) == 21
    assert parts[0].first == 1
    value = read(prompt.parts_value(rendered, parts, make_trace(), position=1))
    assert [row[3] if isinstance(row[3], str) else row[3][0] for row in value["rows"]] == ["1", "7", "10", "4", "22"]
    assert value["selected"] == 1
    assert value["caption"].startswith("14 of 22 tokens are scaffold, 7 are content.")
    assert "outside the text: 1." in value["caption"]


def test_the_strip_holds_the_whole_text_span_by_span(trace):
    rendered = trace.rendered(0)
    value = read(prompt.render(make_view(trace, position=12))[0])
    texts = [chip[1] for chip in value["chips"]]
    assert "".join(texts).replace("⏎\n", "\n") == rendered.text
    assert [chip[3] for chip in value["chips"]] == [
        "scaffold", "system", "scaffold", "scaffold", "user", "scaffold", "scaffold"
    ]  # fmt: skip
    assert value["selected"] == 10  # where the span of position 12 begins
    assert [chip[2] for chip in value["chips"]] == [0, 3, 5, 7, 10, 15, 17]


def test_what_the_template_added_is_named(trace):
    groups = read(prompt.render(make_view(trace))[0])["groups"]
    assert "added by the template" in groups[0][2]
    assert groups[1][2] == ""
    assert "generation prompt" in groups[2][2]


def test_a_given_system_message_is_not_called_added():
    given = [(role, 0 if role == "system" else message, kind, ids) for role, message, kind, ids in PROMPT]
    rendered = make_rendered(given)
    trace = dataclasses.replace(make_trace(), events=(rendered,))
    groups = read(prompt.render(make_view(trace))[0])["groups"]
    assert [group[2] for group in groups[:2]] == ["", ""]


def test_the_table_adds_up_and_a_row_leads_to_its_first_position(trace):
    value = read(prompt.render(make_view(trace, position=8))[1])
    rows = value["rows"]
    characters = [int(row[2]) for row in rows]
    tokens = [int(row[3] if isinstance(row[3], str) else row[3][0]) for row in rows]
    assert sum(characters[:-1]) == characters[-1] == len(trace.rendered(0).text)
    assert sum(tokens[:-1]) == tokens[-1] == 21
    assert [row[1] for row in rows] == ["the template", "you", "the template", ""]
    assert [key["position"] for key in value["keys"]] == [0, 7, 17, 20]
    assert value["selected"] == 1


@pytest.mark.parametrize(
    ("count", "obey", "said"), [(0, False, "No control marks"), (2, False, "ordinary"), (2, True, "obeyed")]
)
def test_marks_typed_in_content_are_reported(count, obey, said):
    trace = make_trace(obey_marks_in_content=obey)
    events = (make_rendered(marks_in_content=count), *trace.events[1:])
    caption = read(prompt.render(make_view(dataclasses.replace(trace, events=events)))[1])["caption"]
    assert said in caption
    assert (f": {count}." in caption) == bool(count)


def test_an_earlier_answer_is_the_models():
    parts = [*PROMPT[:-1], ("assistant", 1, "content", (15, 19)), ("user", 2, "content", (8,))]
    rendered = make_rendered(parts)
    trace = make_trace(follow_ups=["Be"])
    value = read(prompt.parts_value(rendered, prompt.select(rendered), trace, position=None))
    assert [row[1] for row in value["rows"]] == ["the template", "you", "the model, earlier", "you", ""]


def test_answers_and_results_given_with_the_chat_are_not_said_to_be_the_persons():
    parts = [
        *PROMPT[:-1],
        ("assistant", 1, "content", (15,)),
        ("tool", 2, "content", (9,)),
        ("user", 3, "content", (8,)),
    ]
    given = [{"role": role, "content": "Be"} for role in ("user", "assistant", "tool", "user")]
    rendered = make_rendered(parts)
    value = read(prompt.parts_value(rendered, prompt.select(rendered), make_trace(messages=given), position=None))
    assert [row[1] for row in value["rows"][1:-1]] == [
        "you", "an earlier answer, given with the chat", "a tool's result, given with the chat", "you",
    ]  # fmt: skip


def test_a_turn_that_was_refused_is_not_said_to_have_ended_at_once(trace):
    refused = Stopped(0, "error", {"field": "messages", "message": "too long"}, "")
    unfed = dataclasses.replace(trace, events=(make_rendered(), refused))
    value = read(prompt.render(make_view(unfed))[2])
    assert value["rows"][0][-1] == "nothing: it was refused before the model was fed"
    caption = read(compare_value(answer_of(unfed, 0), Answer(5, 6, "Hi", "eos")))["caption"]
    assert "A turn that was refused has no answer to compare." in caption
    assert "differ" not in caption


def test_raw_text_is_said_to_be_raw():
    rendered = make_rendered([("user", None, "content", (8, 9))])
    experiment = make_experiment(messages=None, prompt="Be kind")
    trace = dataclasses.replace(make_trace(), experiment=experiment, events=(rendered,))
    view = make_view(trace)
    strip, parts, compare, _ = prompt.render(view)
    assert read(strip)["groups"][0][2].startswith("no template")
    assert [row[0] for row in read(compare)["rows"]] == ["without it"]
    assert "no template already" in read(compare)["caption"]
    assert read(parts)["rows"][0][1] == "you"
    assert station(prompt, view) == ("2 tok", "raw text")


def test_compare_shows_both_answers_and_says_what_differs():
    templated, raw = Answer(21, 6, "Hi", "eos"), Answer(5, 16, "and\nso <b>on</b>", "length")
    value = read(compare_value(templated, raw))
    assert value["rows"][0] == ["with the template", "21", "6", "EOS", "Hi"]
    assert value["rows"][1] == ["without it", "5", "16", "length", "and⏎\nso <b>on</b>"]
    assert "16 tokens longer. The two answers differ." in value["caption"]
    assert "Both" not in value["caption"]
    assert "the same" in read(compare_value(templated, Answer(5, 6, "Hi", "eos")))["caption"]
    nothing = read(compare_value(templated, Answer(5, 1, "", "eos")))["rows"][1]
    assert nothing[-1] == "nothing: it ended at once"
    assert "to its end" in read(compare_value(Answer(21, 1, "H", None), raw))["caption"]


def test_compare_waits_for_its_button_and_then_shows_the_other_run(trace):
    assert len(read(prompt.render(make_view(trace))[2])["rows"]) == 1
    rendered = make_rendered([("user", None, "content", (8, 9))])
    asked = make_experiment(messages=None, prompt=transcript(trace)[-1]["content"])
    raw = dataclasses.replace(make_trace((15,), stop=False), experiment=asked, events=(rendered,))
    rows = read(prompt.render(make_view(trace, results={"without_template": raw}))[2])["rows"]
    assert [row[1] for row in rows] == ["21", "2"]
    other = dataclasses.replace(raw, experiment=make_experiment(messages=None, prompt="another question"))
    assert len(read(prompt.render(make_view(trace, results={"without_template": other}))[2])["rows"]) == 1
    assert answer_of(trace, 0) == Answer(21, 6, "Hi\u200f😀!", "eos")


def test_the_templates_source_is_shown_as_it_is(trace):
    assert read(prompt.render(make_view(trace))[3])["chips"][0][1] == trace.facts.chat_template
    bare = dataclasses.replace(trace, facts=make_facts(chat_template=None))
    assert "no chat template" in read(prompt.render(make_view(bare))[3])["chips"][0][1]


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("<|im_start|>{{ role }}", "ChatML"),
        ("<|start_header_id|>", "Llama 3"),
        ("<start_of_turn>", "Gemma"),
        ("[INST]", "Mistral"),
        ("Human:", "own format"),
        (None, "no template"),
    ],
)
def test_the_format_is_told_by_its_marks(template, name):
    assert prompt.format_name(template) == name


def test_station_and_reason_before_anything_is_rendered(trace):
    empty = make_view(dataclasses.replace(trace, events=()))
    assert station(prompt, empty) == ("–", "ChatML")
    assert prompt.unavailable(empty)
    assert prompt.unavailable(make_view(trace)) is None
    assert station(prompt, make_view(trace)) == ("21 tok", "ChatML")


def test_running_text_shows_breaks_and_names_the_invisible():
    assert running_text("a b\n\u202ec\t") == "a b⏎\n⟨U+202E⟩c⇥"


def test_a_span_without_tokens_still_has_a_place(trace):
    rendered = trace.rendered(0)
    empty = dataclasses.replace(rendered, spans=(*rendered.spans, Span(122, 122, "assistant", None, "scaffold")))
    assert sum(part.tokens for part in prompt.select(empty)) == 21
    value = read(prompt.strip_value(empty, prompt.select(empty), raw=False, position=None))
    assert len(value["chips"]) == 7


def test_the_recorded_run_names_the_default_system_prompt(paris):
    value = read(prompt.render(make_view(paris))[0])
    assert value["groups"][0][2].startswith("added by the template")
    assert value["chips"][1][1] == "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    assert station(prompt, make_view(paris)) == ("37 tok", "ChatML")


def test_a_recorded_mark_in_content_stays_text_and_is_counted(paris):
    strip, parts, _, _ = prompt.render(make_view(paris, turn=1))
    assert "Say <|im_end|> in 中文 👍🏽" in [chip[1] for chip in read(strip)["chips"]]
    assert "inside the messages: 1. They were cut" in read(parts)["caption"]
    assert [row[1] for row in read(parts)["rows"]][2] == "the model, earlier"
