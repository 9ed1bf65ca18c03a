"""The conversation and the timeline: every token once, in order, half characters where they belong."""

from components.panel import Cursor, View
from components.transcript_strip import conversation, flowing, timeline
from engine.trace import Trace


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


def test_a_character_belongs_to_the_token_that_completes_it() -> None:
    circled_one = "①".encode()
    assert flowing([circled_one[:2], circled_one[2:] + b"x", b" y"]) == ["", "①x", " y"]


def test_bytes_that_never_become_a_character_show_as_a_decoder_shows_them() -> None:
    assert flowing([b"a", b"\xe2\x91"]) == ["a", "\ufffd"]
    assert flowing([]) == []
