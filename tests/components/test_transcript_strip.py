"""The conversation and the timeline: every token once, in order, half characters where they belong."""

from dataclasses import replace

from components.panel import Cursor, View
from components.transcript_strip import conversation, flowing, timeline
from engine.trace import Stepped, Stopped, Trace


def view(trace: Trace) -> View:
    return View(facts=trace.facts, trace=trace, cursor=Cursor())


def test_the_timeline_has_every_position_once(paris: Trace) -> None:
    chips = timeline(view(paris))[0].chips
    prompt = len(paris.rendered(0).token_ids)
    assert [chip.position for chip in chips] == list(range(prompt + len(paris.steps(0))))
    assert [chip.state for chip in chips] == ["computed"] * prompt + ["sampled"] * len(paris.steps(0))


def test_messages_read_as_they_were_written(paris: Trace) -> None:
    groups = conversation(view(paris))
    rendered = paris.rendered(0)
    contents = [rendered.text[span.start : span.end] for span in rendered.spans if span.kind == "content"]
    assert ["".join(chip.text for chip in group.chips) for group in groups] == [*contents, paris.answer(0)]
    assert groups[0].label == "system · added by the template"
    assert [group.role for group in groups] == ["system", "user", "assistant"]


def test_what_is_held_back_is_not_in_the_conversation(paris: Trace) -> None:
    """Steps 4 and 5 (" is", " Paris") as a stop string would have them: one space shown, the rest never."""
    shown = {4: " ", 5: "", 6: "", 7: ""}
    events = tuple(
        replace(event, text=shown.get(event.step, event.text)) if isinstance(event, Stepped) else event
        for event in paris.events
    )
    answer = conversation(view(replace(paris, events=events)))[-1]
    assert "".join(chip.text for chip in answer.chips) == "The capital of France "
    assert [chip.position for chip in answer.chips] == [37, 38, 39, 40, 41]


def test_what_was_held_back_and_proved_harmless_comes_with_the_end(paris: Trace) -> None:
    texts = {6: ""}
    events = tuple(
        replace(event, text=texts.get(event.step, event.text))
        if isinstance(event, Stepped)
        else replace(event, text=".")
        if isinstance(event, Stopped)
        else event
        for event in paris.events
    )
    answer = conversation(view(replace(paris, events=events)))[-1]
    assert "".join(chip.text for chip in answer.chips) == paris.answer(0)
    assert answer.chips[-1].position == paris.steps(0)[-1].position


def test_a_character_belongs_to_the_token_that_completes_it() -> None:
    circled_one = "①".encode()
    assert flowing([circled_one[:2], circled_one[2:] + b"x", b" y"]) == ["", "①x", " y"]


def test_bytes_that_never_become_a_character_show_as_a_decoder_shows_them() -> None:
    assert flowing([b"a", b"\xe2\x91"]) == ["a", "\ufffd"]
    assert flowing([]) == []
