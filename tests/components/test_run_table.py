import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from components.copy import DEFAULT, speak
from components.run_table import panel as run_table
from components.run_table.mistakes import evidence, mistakes_value
from components.run_table.parity import MAX_ROWS, parity_value
from components.run_table.stages import PROCESSORS
from components.sampling.candidates import stage_name
from engine.experiment import TRANSFORMERS_ORDER
from engine.trace import Stage, Stopped
from tests.components.handmade import make_rendered, make_shapes, make_step, make_trace, make_view
from tests.components.reading import read, station


def stages(view):
    return {row.stage: row for row in run_table.select(view)}


def test_the_stages_come_in_pipeline_order(trace):
    assert [row.stage for row in run_table.select(make_view(trace, position=24))] == [
        "render", "tokenise", "tensors", "prefill",
        "forward", "temperature", "top-k", "draw", "stop?", "detokenise", "KV cache",
    ]  # fmt: skip
    assert [row.once for row in run_table.select(make_view(trace))] == [True] * 4 + [False] * 7


def test_each_row_carries_the_traces_numbers(trace):
    found, step = stages(make_view(trace, position=24)), trace.steps(0)[3]
    assert (found["render"].given, found["render"].gave) == ("1 message", f"{len(trace.rendered(0).text)} characters")
    assert found["tokenise"].gave == "21 ids"
    assert (found["prefill"].given, found["prefill"].time) == ("(1, 21)", "250 ms")
    assert found["forward"].given == "⟨F0⟩⟨9F⟩ at position 23"
    assert (found["forward"].gave, found["forward"].time) == ("(1, 1, 24) logits", "50 ms")
    assert found["top-k"].given == f"24 kept, H {step.stages[1].entropy:.2f}"
    assert found["top-k"].gave == f"4 kept, H {step.stages[2].entropy:.2f}"
    assert found["draw"].given == f"4 kept, u = {step.draw.u:.3f}"
    assert found["draw"].gave == "⟨98⟩⟨80⟩, id 18"
    assert found["stop?"].gave == "no, go on"
    assert found["detokenise"].given == "2 B"
    assert found["detokenise"].gave == "😀"
    assert (found["KV cache"].given, found["KV cache"].gave) == ("24 positions", "3.00 KiB")


def test_the_first_step_has_no_forward_of_its_own(trace):
    row = stages(make_view(trace, position=21))["forward"]
    assert row.given == "the prefill's last row"
    assert row.time == ""


def test_held_bytes_and_the_stop_show(trace):
    held = stages(make_view(trace, position=23))["detokenise"]
    assert held.gave == "nothing, held back: 2 B"
    assert stages(make_view(trace))["stop?"].gave == "yes: EOS"
    assert stages(make_view(trace, position=25))["stop?"].gave == "no, go on"


def test_the_way_of_choosing_is_named(trace):
    def draw(**changes):
        events = [dataclasses.replace(e, **changes) if getattr(e, "step", None) == 5 else e for e in trace.events]
        return stages(make_view(dataclasses.replace(trace, events=tuple(events))))["draw"]

    assert draw().by == "torch.Generator"
    assert (draw(draw=None).by, draw(draw=None).given) == ("torch.argmax", "best of 4")
    assert draw(draw=None, forced=True).given == "your choice"
    other = dataclasses.replace(trace.steps(0)[5].draw, drawn_id=4)
    assert draw(draw=other, forced=True).given == "your choice; the draw gave user"


def test_every_processor_has_its_class_and_any_stage_a_row(trace):
    assert set(PROCESSORS) == set(TRANSFORMERS_ORDER)
    last = trace.steps(0)[-1]
    more = tuple(Stage(name, {}, 24, 1.0, 0.0) for name in ("logits", *TRANSFORMERS_ORDER))
    events = (*trace.events[:-2], dataclasses.replace(last, stages=more, probabilities=np.zeros((12, 6))))
    rows = run_table.select(make_view(dataclasses.replace(trace, events=events)))
    assert [row.by for row in rows if row.by in PROCESSORS.values()] == list(PROCESSORS.values())


def test_before_the_first_token_only_the_turn_is_shown():
    view = make_view(make_trace((), stop=False))
    assert [row.once for row in run_table.select(view)] == [True] * 4
    assert "before its first token" in read(run_table.render(view)[0])["caption"]
    only_rendered = make_view(dataclasses.replace(make_trace(()), events=(make_rendered(),)))
    assert [row.stage for row in run_table.select(only_rendered)] == ["render", "tokenise"]


def test_raw_text_and_reused_positions_are_said(trace):
    raw = make_trace(messages=None, prompt="Be kind")
    rendered = stages(make_view(raw))["render"]
    assert (rendered.given, rendered.by) == ("your text, as it is", "–"), "no template is applied to it"
    assert stages(make_view(trace))["render"].by == "tokenizer.apply_chat_template"
    prefilled = dataclasses.replace(trace.prefilled(0), first=15, shapes=make_shapes(6, 21, trace.facts))
    reused = dataclasses.replace(trace, events=(trace.events[0], prefilled, *trace.events[2:]))
    assert stages(make_view(reused))["prefill"].given == "(1, 6) after 15 cached"
    assert stages(make_view(reused))["tensors"].gave == "ids (1, 6), mask (1, 21), positions (1, 6)"
    assert stages(make_view(trace))["tensors"].gave == "3 × (1, 21)"


def test_stages_are_named_in_the_page_s_language(trace):
    speak("zh")
    try:
        shown = [row.stage for row in run_table.select(make_view(trace, position=24))]
        assert [stage_name("temperature"), stage_name("top_k")] == shown[5:7]
        assert shown[5] == "温度"
    finally:
        speak(DEFAULT)


def test_what_the_end_of_the_turn_released_is_shown(trace):
    released = dataclasses.replace(trace, events=(*trace.events[:-1], Stopped(0, "length", {}, "XY")))
    assert stages(make_view(released))["detokenise"].gave == "nothing, then released at the end: XY"
    assert "released" not in stages(make_view(released, position=25))["detokenise"].gave


def test_times_are_those_of_the_trace(trace):
    rows = {row[0]: row[1] for row in read(run_table.render(make_view(trace))[1])["rows"]}
    assert rows["TTFT, time to first token"] == "252 ms"  # prefill 250, first step 2
    assert rows["TPOT, time per output token"] == "52 ms"
    assert rows["tokens per second"] == "19.2"
    assert rows["prefill, tokens per second"] == "84.0"  # 21 tokens in 0.25 s
    early = read(run_table.render(make_view(make_trace((15,), stop=False)))[1])["rows"]
    assert [row[1] for row in early[1:3]] == ["not yet", "not yet"]


def parity(ours, theirs, first_difference, reason=None):
    return SimpleNamespace(reason=reason, ours=ours, theirs=theirs, first_difference=first_difference, seconds=0.5)


def test_parity_waits_for_its_button(trace):
    value = read(run_table.render(make_view(trace))[2])
    assert value["rows"] == []
    assert "Check against generate" in value["caption"]


def test_equal_ids_are_listed_and_said(trace):
    ids = tuple(step.token_id for step in trace.steps(0))
    value = read(parity_value(parity(ids, ids, None), trace.steps(0)))
    assert [row[2] for row in value["rows"]] == [str(i) for i in ids]
    assert value["rows"][2][1] == "⟨F0⟩⟨9F⟩"
    assert {row[3][1] for row in value["rows"]} == {"ok"}
    assert "the same 6 ids" in value["caption"]


def test_the_first_difference_is_selected_and_in_sight(trace):
    ours, theirs = tuple(range(200)), (*range(100), *range(200, 300))
    value = read(parity_value(parity(ours, theirs, 100), ()))
    assert len(value["rows"]) == MAX_ROWS
    assert value["rows"][value["selected"]] == ["100", "", "100", ["200", "warn", None, ""]]
    assert "part at step 100" in value["caption"]


def test_a_shorter_one_and_a_reason_are_said():
    value = read(parity_value(parity((1, 2), (1, 2, 3), 2), ()))
    assert "goes on" in value["caption"]
    assert value["rows"][2][2] == "nothing"
    assert "cannot be compared: no" in read(parity_value(parity((), (), None, "no"), ()))["caption"]


def test_only_the_mistake_at_work_is_marked(trace):
    for active in (None, "mask_not_extended", "history_reencoded", "eos_not_watched"):
        rows = read(mistakes_value(active, trace.steps(0)[3], trace.steps(0), (2,)))["rows"]
        assert len(rows) == 3
        assert sum(isinstance(row[0], list) for row in rows) == (active is not None)
        assert sum(row[2][0] == "off" for row in rows) == 3 - (active is not None)


def test_a_short_mask_is_counted(trace):
    step = make_step(4, 21, 18, trace.facts, shapes=make_shapes(1, 25, trace.facts) | {"attention_mask": (1, 21)})
    said = evidence("mask_not_extended", step, [step], (2,))
    assert said == "The mask has 21 entries, the context 25 positions: 4 are hidden."


def test_a_history_fed_again_grows_in_time(trace):
    steps = [
        make_step(k, 21, 18, trace.facts, seconds=0.01 * k, shapes=make_shapes(21 + k, 21 + k, trace.facts))
        for k in range(10)
    ]
    said = evidence("history_reencoded", steps[-1], steps, (2,))
    assert said == "30 tokens fed for this step instead of 1; a decode step took 20 ms at first and takes 80 ms now."
    assert "no decode step yet" in evidence("history_reencoded", steps[0], steps[:1], (2,))


def test_tokens_after_the_end_mark_are_counted(trace):
    steps = [make_step(k, 21, token, trace.facts) for k, token in enumerate((15, 2, 15, 2, 19))]
    assert evidence("eos_not_watched", steps[-1], steps, (2,)) == "3 tokens came after the first end mark, at step 1."
    assert "No end mark" in evidence("eos_not_watched", steps[0], steps[:1], (2,))


@pytest.mark.parametrize(("answer", "expected"), [((15, 16), ("2 tok", "running")), ((), ("–", ""))])
def test_the_station_counts_the_answer(answer, expected):
    assert station(run_table, make_view(make_trace(answer, stop=False))) == expected


def test_the_station_says_how_it_ended(trace):
    assert station(run_table, make_view(trace)) == ("6 tok", "EOS")
    assert run_table.unavailable(make_view(dataclasses.replace(trace, events=())))


def test_the_recorded_run_fills_every_row(paris):
    rows = run_table.select(make_view(paris))
    assert [row.stage for row in rows[5:9]] == ["repetition", "temperature", "top-k", "top-p"]
    assert rows[-3].gave == "yes: EOS"
    assert all(row.given and row.gave and row.by for row in rows)
