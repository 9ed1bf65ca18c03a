"""What was refused stands in a record as a key and values: said in the words of today, in any language of the page."""

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest

from components.copy import speak, words_in
from components.in_words import translated
from components.status import failure
from engine import said as sentences
from engine.answers.parity import Parity
from engine.answers.refusal import Refusal
from engine.answers.table import ANSWERS
from engine.conversation import Conversation
from engine.exact_json import EXACT
from engine.experiment import ExperimentError
from engine.playback import Playback
from engine.record import Answered, Record, record_from_bytes, record_to_bytes
from engine.refusals import Refused
from engine.said import Said, Sentence, said
from engine.trace import Rendered, Stopped
from tests.components.handmade import make_view
from tests.engine.conversations import experiment, finish
from tests.engine.models import tiny
from tests.engine.records import contents, read, recorded

STATE = said("state_no_way_back", layer=1)


def ended_badly() -> Record:
    """A run whose prompt is too long, with an answer that was refused and one that says why it is none."""
    conversation = Conversation(tiny("llama"), experiment(context={"max_tokens": 2}))
    finish(conversation)
    events = tuple(
        replace(event, refused=STATE) if isinstance(event, Rendered) else event for event in conversation.trace.events
    )
    refused = Refusal.of(ExperimentError("position", said("not_fed", last=1, position=7)))
    answers = (
        Answered("lens", {"turn": 0, "position": 7}, refused),
        Answered("parity", {}, Parity(said("parity_no_token"))),
    )
    return Record(replace(conversation.trace, events=events), answers)


def reasons(record: Record) -> list[Any]:
    """Every sentence of `ended_badly`."""
    trace = record.trace
    stopped, rendered = trace.stopped(0), trace.rendered(0)
    assert stopped is not None and rendered is not None
    lens, parity = (answered.result for answered in record.answers)
    return [stopped.evidence["message"], rendered.refused, lens.reason, lens.reason.values["reason"], parity.reason]


def test_a_refusal_comes_back_with_its_key_and_its_values():
    record = ended_badly()
    again = record_from_bytes(record_to_bytes(record))
    for told, back in zip(reasons(record), reasons(again), strict=True):
        assert type(back) is Said
        assert (back, back.key, back.values) == (told, told.key, told.values)
    keys = [told.key for told in reasons(again)]
    assert keys == ["prompt_too_long", "state_no_way_back", "of_field", "not_fed", "parity_no_token"]
    assert record_to_bytes(again) == record_to_bytes(record)
    assert again.answers[0].result.reason == "position: positions 0 to 1 were fed, there is no position 7"


def test_in_the_file_stand_the_key_the_values_and_the_english_text():
    content = contents(ended_badly())
    kept = content["trace"]["events"][-1]["evidence"]["message"]
    tokens = kept["values"]["tokens"]
    assert kept == {
        "said": "prompt_too_long",
        "values": {"tokens": tokens, "whose": "context.max_tokens", "limit": 2},
        "text": f"the prompt has {tokens} tokens, context.max_tokens holds 2; shorten it",
    }
    assert content["answers"][0]["refused"]["values"]["reason"]["said"] == "not_fed"


def test_a_page_in_chinese_says_it_in_chinese():
    again = record_from_bytes(record_to_bytes(ended_badly()))
    speak("zh")
    try:
        told = [translated(reason) for reason in reasons(again)]
        with pytest.raises(Refused) as refused:
            Playback(again).probe(0, "lens", turn=0, position=7)
        assert translated(refused.value.args[0]) == told[2]
        assert failure(make_view(again.trace)) == f"messages: {told[0]}"
    finally:
        speak("en")
    say = words_in("zh", "refusals")
    values = record_from_bytes(record_to_bytes(ended_badly())).trace.events[-1].evidence["message"].values
    assert told[0] == say.text("prompt_too_long", **values)
    assert told[1] == say.text("state_no_way_back", layer=1)
    assert told[2] == "position: " + say.text("not_fed", last=1, position=7)
    assert told[4] == say.text("parity_no_token")


def test_a_later_wording_leaves_no_old_text(monkeypatch):
    data = record_to_bytes(ended_badly())
    later = dict(sentences.english()) | {"parity_no_token": "nothing was drawn so far"}
    monkeypatch.setattr(sentences, "english", lambda: later)
    assert record_from_bytes(data).answers[1].result.reason == "nothing was drawn so far"


def kept(key: Any = "not_fed", values: Any = None, text: Any = "as it was kept") -> dict[str, Any]:
    return {"said": key, "values": {"last": 1, "position": 7} if values is None else values, "text": text}


@pytest.mark.parametrize(
    "value",
    [
        kept("of_a_later_program"),
        kept(""),
        kept("field_"),
        kept(values={}),
        kept(values={"last": 1}),
        kept("record_bytes", {"most": "many", "count": 3}),  # {most:,} takes no text
        kept("record_bytes", {"most": kept("an_object", {}), "count": 3}),
        kept("no_room_in_memory", {"title": "", "needed": "x", "kind": "", "free": 1, "advice": ""}),
        kept("of_field", {"field": "x" * 2_000, "reason": ""}),
    ],
    ids=lambda value: value["said"] or "none",
)
def test_what_this_program_cannot_say_is_shown_as_it_was_kept(value):
    found = EXACT.decode(Sentence, value)
    assert found == "as it was kept"
    assert type(found) is str
    speak("zh")
    assert translated(found) == "as it was kept"
    speak("en")


def test_a_text_alone_is_taken_as_it_stands():
    content = contents(ended_badly())
    content["answers"][0]["refused"] = "an old reason"
    content["answers"][1]["result"]["reason"] = "another"
    content["trace"]["events"][-1]["evidence"]["message"] = "in plain words"
    record = read(content)
    assert [one.result.reason for one in record.answers] == ["an old reason", "another"]
    assert record.trace.events[-1].evidence["message"] == "in plain words"


def nested(depth: int) -> dict[str, Any]:
    return kept("wanted", {"wanted": nested(depth - 1)}) if depth else kept("a_list", {})


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 3, 0.5, [], {}, [kept()], {"said": "a_list"}, kept() | {"more": 1}),
        *(kept(3), kept(None), kept(["a_list"]), kept("\ud800"), kept(text=3), kept(text=None), kept(text="\udc00")),
        *(kept(values=[1]), kept(values="x"), kept(values={"last": [1], "position": 7})),
        *(kept(values={"last": None}), kept(values={"last": {}}), kept(values={"last": 10**40, "position": 7})),
        *(kept(values={"last": "\ud800", "position": 7}), kept(values={"\ud800": 1}), nested(4), nested(60)),
    ],
)
def test_what_is_no_sentence_is_refused_with_the_place(value):
    content = contents(ended_badly())
    content["answers"][0]["refused"] = value
    with pytest.raises(ExperimentError) as caught:
        read(content)
    assert caught.value.path.startswith("answers[0].refused")
    assert len(str(caught.value)) < 400


def test_a_sentence_stands_only_where_a_reason_may():
    content = contents(recorded("llama", ("lens",)))
    content["trace"]["events"][0]["text"] = kept()
    with pytest.raises(ExperimentError, match="text: text is wanted, got an object"):
        read(content)


def test_values_are_never_read_as_templates():
    found = EXACT.decode(Sentence, kept("of_field", {"field": "{reason.__class__}", "reason": "{0}"}))
    assert found == "{reason.__class__}: {0}"


def test_a_model_s_arguments_are_no_sentences():
    """What a model writes into a call may look like one; only reasons are read as such."""
    assert EXACT.decode(dict[str, Any], EXACT.encode({"a": kept("a_list", {})})) == {"a": kept("a_list", {})}


@pytest.mark.parametrize(
    ("stopped", "told"),
    [
        (Stopped(0, "error", {}, ""), "'field' is missing"),
        (Stopped(0, "error", {"field": 3, "message": ""}, ""), "'field' is missing"),
        (Stopped(0, "error", {"field": "", "message": ["x"]}, ""), "'message' is missing"),
        (Stopped(0, "no_candidate", {"stage": "evil"}, ""), "no turn ends like that"),
        (Stopped(0, "no_candidate", {"stage": ["top_k"]}, ""), "no turn ends like that"),
        (Stopped(0, "length", {}, ""), "no turn ends like that"),
        (Stopped(0, "length", {"limit": "also", "also": []}, ""), "no turn ends like that"),
        (Stopped(0, "length", {"limit": "context", "context": "x"}, ""), "'context' is missing"),
        (Stopped(0, "length", {"limit": ["context"]}, ""), "no turn ends like that"),
        (Stopped(0, "cancelled", {"limit": "run_seconds", "seconds": "x"}, ""), "'seconds' is missing"),
        (Stopped(0, "tool_limit", {"rounds": True}, ""), "'rounds' is missing"),
        (Stopped(0, "eos", {"also": 3}, ""), "no turn ends like that"),
        (Stopped(0, "eos", {}, ""), "has a token"),
        (Stopped(0, "stop_string", {"string": "x"}, ""), "has a token"),
    ],
)
def test_an_end_that_does_not_tell_what_the_page_says_of_it_is_refused(stopped, told):
    record = ended_badly()
    events = (*record.trace.events[:-1], stopped)
    data = gzip.decompress(record_to_bytes(Record(replace(record.trace, events=events))))
    with pytest.raises(ExperimentError, match=told):
        read(json.loads(data))


def test_every_reason_that_an_answer_gives_may_be_a_sentence():
    """Of the answers, these two tell in words why there is none."""
    hints = {name: str(kind.__annotations__) for name, kind in ANSWERS.items()}
    assert sorted(name for name, told in hints.items() if "Said" in told or "Sentence" in told) == ["parity", "policy"]
