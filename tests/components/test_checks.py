import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from components import checks
from tests.components.handmade import make_facts, make_step, make_trace, make_view

FACTS = make_facts()


def step(**changes):
    return dataclasses.replace(make_step(3, 21, 18, FACTS), **changes)


def test_all_checks_hold_on_a_sound_run(trace):
    for position in range(21, 27):
        found = checks.select(make_view(trace, position=position))
        assert len(found) == 5
        assert all(check.ok is True for check in found)


def test_bytes_that_the_formula_does_not_give_fail():
    # 2 (K and V) × 2 layers × 2 KV heads × 4 numbers × 4 bytes × 24 positions
    assert step().kv_bytes == 2 * 2 * 2 * 4 * 4 * 24
    assert checks.bytes_check(step(), FACTS).ok is True
    wrong = checks.bytes_check(step(kv_bytes=3071), FACTS)
    assert wrong.ok is False
    assert "3,071" in wrong.detail
    assert "3,072" in wrong.detail


def test_a_sliding_layer_keeps_its_window_less_one():
    facts = make_facts(layer_kinds=("full", "sliding"), sliding_window=8)
    layer = 2 * 2 * 4 * 4
    assert checks.bytes_check(step(kv_bytes=layer * 24 + layer * 7), facts).ok is True
    assert facts.kv_bytes(5) == 2 * layer * 5


def test_layers_without_keys_take_nothing():
    assert make_facts(layer_kinds=("shared", "stateful")).kv_bytes(100) == 0


def test_positions_and_mask_fail_under_the_mistakes():
    assert checks.positions_check(step(kv_tokens=0)).ok is False
    short = step(shapes=step().shapes | {"attention_mask": (1, 21)})
    assert checks.mask_check(short).ok is False
    assert checks.mask_check(step()).ok is True


def test_what_a_window_holds_is_told_apart_from_what_was_fed():
    full = step(kv_tokens=18, shapes=step().shapes | {"attention_mask": (1, 18)})
    positions, mask = checks.positions_check(full, 18), checks.mask_check(full, 18)
    assert positions.ok and mask.ok
    assert "sampled tokens without the last make 24, of which the window holds 18" in positions.detail
    assert "The mask has 18 entries; the context has 24 positions, of which the window holds 18" in mask.detail
    anew = step(kv_tokens=18, shapes=step().shapes | {"attention_mask": (1, 1, 30, 30)})
    assert checks.mask_check(anew, 18).ok
    assert "a row and a column for each of 30 positions" in checks.mask_check(anew, 18).detail
    assert "make 24." in checks.positions_check(step(), 40).detail


@pytest.mark.parametrize("u", [-0.1, 1.5])
def test_a_draw_outside_its_interval_fails(u):
    sound = step()
    assert checks.draw_check(sound, dataclasses.replace(sound.draw, u=u)).ok is False


def test_an_interval_that_is_not_the_probability_fails():
    sound = step()
    assert checks.draw_check(sound, sound.draw).ok is True
    assert checks.draw_check(sound, dataclasses.replace(sound.draw, high=sound.draw.high + 0.01)).ok is False
    assert checks.draw_check(sound, dataclasses.replace(sound.draw, drawn_id=9)).ok is False
    assert checks.draw_check(sound, dataclasses.replace(sound.draw, drawn_id=99)).ok is False


def test_a_token_that_comes_back_fails():
    sound = step()
    logits = sound.logits.copy()
    logits[1, 0] = -np.inf
    assert checks.stages_check(step(logits=logits)).ok is False
    more = tuple(dataclasses.replace(stage, kept=i + 1) for i, stage in enumerate(sound.stages))
    assert checks.stages_check(step(stages=more)).ok is False


def test_candidates_that_weigh_more_than_one_fail():
    check = checks.stages_check(step(probabilities=step().probabilities * 1.2))
    assert check.ok is False
    assert "After top-k a token came back" in check.detail


def test_a_greedy_step_has_no_draw_to_check():
    trace = make_trace((15,), stop=False)
    events = [dataclasses.replace(e, draw=None) if hasattr(e, "draw") else e for e in trace.events]
    assert len(checks.select(make_view(dataclasses.replace(trace, events=tuple(events))))) == 4


@pytest.mark.parametrize(
    ("parity", "ok", "detail"),
    [
        (
            SimpleNamespace(reason=None, ours=(1, 2), first_difference=None, turn=0),
            True,
            "2 tokens are the same in both",
        ),
        (SimpleNamespace(reason=None, ours=(1, 2), first_difference=1, turn=0), False, "part at step 1"),
        (SimpleNamespace(reason="another order", ours=(), first_difference=None, turn=0), None, "another order"),
    ],
)
def test_loop_equals_generate_once_it_was_asked(trace, parity, ok, detail):
    assert not any(check.label == "loop = generate" for check in checks.select(make_view(trace)))
    check = checks.select(make_view(trace, results={"parity": parity}))[-1]
    assert (check.label, check.ok) == ("loop = generate", ok)
    assert detail in check.detail
    parity.turn = 1
    assert not any(
        check.label == "loop = generate" for check in checks.select(make_view(trace, results={"parity": parity}))
    )


@pytest.mark.parametrize(
    ("reused", "difference", "ok"), [(23, 4e-5, True), (23, 2e-3, False), (0, 0.0, None), (23, float("nan"), False)]
)
def test_cached_equals_uncached_once_it_was_asked(trace, reused, difference, ok):
    result = SimpleNamespace(turn=0, step=3, reused=reused, max_difference=difference)
    check = checks.select(make_view(trace, results={"uncached": result}))[-1]
    assert (check.label, check.ok) == ("cached = uncached", ok)
    assert "tep 3" in check.detail


def test_rounding_is_allowed_by_the_type_of_the_weights(trace):
    result = SimpleNamespace(turn=0, step=3, reused=23, max_difference=0.05)
    half = dataclasses.replace(trace, facts=make_facts(dtype="float16"))
    assert checks.select(make_view(half, results={"uncached": result}))[-1].ok is True


def test_the_status_line_shows_each_with_its_mark(trace):
    good = checks.checks(make_view(trace))
    assert [station.tone for station in good] == ["ok"] * 5
    assert all(station.note for station in good)
    assert len({station.id for station in good}) == 5
    events = [dataclasses.replace(e, kv_bytes=1) if getattr(e, "step", None) == 5 else e for e in trace.events]
    bad = checks.checks(make_view(dataclasses.replace(trace, events=tuple(events))))
    assert [station.tone for station in bad] == ["warn", "ok", "ok", "ok", "ok"]


def test_nothing_is_checked_before_the_first_step():
    assert checks.checks(make_view(make_trace((), stop=False))) == []


@pytest.mark.parametrize("turn", [0, 1])
def test_every_step_of_the_recorded_run_passes(paris, turn):
    for recorded in paris.steps(turn):
        found = checks.select(make_view(paris, turn=turn, position=recorded.position))
        assert len(found) == 5
        assert {check.ok for check in found} == {True}


def test_a_window_is_no_larger_than_the_model_s_context():
    made = make_trace()
    context = made.experiment.context.model_copy(update={"strategy": "sliding_window", "max_tokens": 1_000})
    slid = made.experiment.model_copy(update={"context": context})
    facts = make_facts(context=20)
    full = step(kv_tokens=20, kv_bytes=facts.kv_bytes(20))
    events = tuple(full if one is made.steps(0)[3] else one for one in made.events)
    trace = dataclasses.replace(made, experiment=slid, facts=facts, events=events)
    view = dataclasses.replace(make_view(trace, position=24), facts=facts)
    assert view.step == full
    positions = checks.positions_check(full, 20)
    assert positions in checks.select(view)
    assert positions.ok is True
    assert checks.positions_check(full, 1_000).ok is False
