import dataclasses

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from components.panel import View
from components.sampling import panel as sampling
from components.sampling.notes import _effect, notes
from components.sampling.repetition import context_ids, origin, penalty_hits, repeated_ngrams
from components.sampling.tables import penalty_table
from components.widgets.host import read

from .handmade import make_rendered
from .staged import CUT, VOCAB, best, chain, cut_below, random_logits, staged_step, view_of


def note(view: View, step, start: str) -> str:
    return next(group.note for group in notes(view, step) if group.label.startswith(start))


def penalised(**changes):
    """The penalty at 2: 9 stands in the default system prompt, 14 (its logit below 0) in the user's, 19 nowhere."""
    own = np.linspace(-1, -3, VOCAB).astype(np.float32)
    own[[9, 19, 14]] = [4.0, 3.0, -0.5]
    after = own.copy()
    after[9], after[14] = 2.0, -1.0
    return staged_step(
        [("logits", {}, own), ("repetition_penalty", {"repetition_penalty": 2.0}, after)], token=19, **changes
    )


def test_the_penalty_names_where_the_token_stands_and_what_became_of_its_logit():
    step = penalised()
    view = view_of(step)
    hits = penalty_hits(view.rendered, view.steps, step)
    assert {int(step.candidate_ids[hit.index]) for hit in hits} == {9, 14}
    kind = next(hit for hit in hits if step.candidate_ids[hit.index] == 9)
    assert kind.places == {"default_system": [4]}
    assert (kind.rank_before.text, kind.rank_after.text, kind.divided) == ("1", "2", True)
    text = note(view, step, "Why did “␣kind” fall from rank 1 to 2?")
    assert "the system prompt that the template added, at 4" in text
    assert "4.00 is positive, so it was divided by 2 and became 2.00" in text
    assert "before you wrote a word" in text


def test_a_negative_logit_is_multiplied():
    step = penalised()
    view = view_of(step)
    user = next(hit for hit in penalty_hits(view.rendered, view.steps, step) if step.candidate_ids[hit.index] == 14)
    assert not user.divided
    assert (user.logit_before, user.logit_after) == (-0.5, -1.0)
    assert user.places == {"user": [14]}
    rows = read(penalty_table(view.rendered, view.steps, step))["rows"]
    assert rows[1][:3] == ["␣user", "a user message, at 14", "-0.50 → -1.00"]


def test_tokens_of_the_answer_and_the_scaffold_are_told_apart():
    rendered = make_rendered()
    assert [origin(rendered, position) for position in (0, 3, 10, 19, 21)] == [
        "scaffold", "default_system", "user", "scaffold", "answer",
    ]  # fmt: skip
    step = penalised()
    assert context_ids(rendered, view_of(step).steps, step)[-2:] == [15, 16]


def test_a_ban_on_n_grams_names_the_n_gram_and_where_it_stands():
    # The context ends in … 15, 16; with the prompt's "Be kind" made "Hi ‏ kind" the trigram 15 16 9 stands at 3.
    parts = list(make_rendered().token_ids)
    rendered = make_rendered(
        (("system", None, "content", (15, 16, 9)), ("user", 0, "content", tuple(int(i) for i in parts[7:])))
    )
    own = random_logits(2)
    own[9] = own.max() + 1
    after = own.copy()
    after[9] = CUT
    step = staged_step(
        [("logits", {}, own), ("no_repeat_ngram_size", {"no_repeat_ngram_size": 3}, after)], token=int(after.argmax())
    )
    view = view_of(step)
    events = tuple(rendered if event.kind == "rendered" else event for event in view.trace.events)
    view = dataclasses.replace(view, trace=dataclasses.replace(view.trace, events=events))
    (gram,) = repeated_ngrams(rendered, view.steps, step)
    assert gram.token_ids == (15, 16, 9)
    assert gram.position == 0
    assert "already stands at positions 0 to 2" in note(view, step, "Why is “␣kind” ruled out?")


def test_a_constraint_gives_the_number_of_legal_tokens():
    own = random_logits(3)
    legal = cut_below(own, 2)
    stages = [("logits", {}, own), ("grammar", {"kind": "regex", "legal": 2}, legal)]
    step = staged_step(stages, token=int(own.argmax()))
    text = note(view_of(step), step, "What does grammar regex allow?")
    assert "forbids 22 tokens" in text
    assert "leaves 2 of 24" in text


def test_a_cut_end_of_sequence_token_is_said_with_its_stage():
    stages = chain(kept=2)
    step = staged_step(stages, token=best(stages))
    step = dataclasses.replace(step, eos=dataclasses.replace(step.eos, rank=7, cut_by="top_k"))
    assert note(view_of(step), step, "It cannot stop").startswith("top-k cut the end-of-sequence token")


def test_a_forced_token_names_what_the_draw_had_given():
    stages = chain()
    step = staged_step(stages, token=best(stages))
    other = next(int(i) for i in step.candidate_ids if i != step.token_id)
    forced = dataclasses.replace(step, token_id=other, forced=True)
    text = note(view_of(forced), forced, "A person chose")
    assert "The draw itself had given" in text
    assert sampling.stations(view_of(forced))[2].note == "forced"


def test_a_greedy_step_names_what_it_would_have_taken_in_place_of_a_forced_token():
    stages = chain()
    step = dataclasses.replace(staged_step(stages, token=best(stages)), draw=None)
    taken, other = (step.candidate_bytes[i].decode() for i in (0, 1))
    forced = dataclasses.replace(
        step, token_id=int(step.candidate_ids[1]), token_bytes=step.candidate_bytes[1], forced=True
    )
    assert note(view_of(step), step, "Nothing is drawn").startswith("The choice is greedy")
    assert f"the token with the highest score, “{taken}”, is taken" in note(view_of(step), step, "Nothing is drawn")
    assert note(view_of(forced), forced, "A person chose") == f"“{other}” was put in place of the greedy choice."
    said = note(view_of(forced), forced, "Nothing is drawn")
    assert f"the token with the highest score, “{taken}”, would have been taken" in said
    assert "Another was put in its place." in said
    same = dataclasses.replace(step, token_bytes=step.candidate_bytes[0], forced=True)
    text = f"“{taken}” was chosen by a person; the greedy choice would have been the same."
    assert note(view_of(same), same, "A person chose") == text


def test_a_penalty_below_one_is_said_to_raise_the_end_token():
    step = penalised()
    eos = int(step.candidate_ids[next(i for i, hit in enumerate(step.candidate_bytes) if hit == b" user")])
    cut = dataclasses.replace(step, eos=dataclasses.replace(step.eos, token_id=eos, cut_by="top_k"))
    assert "had lowered it before that" in note(view_of(cut), cut, "It cannot stop")
    logits = cut.logits.copy()
    logits[1] = logits[0] * np.where(logits[0] < 0, 0.5, 2)
    raised = dataclasses.replace(cut, logits=logits)
    assert "being below 1, had raised it before that" in note(view_of(raised), raised, "It cannot stop")


def keep(logits: np.ndarray, names: list[str], temperature: float, top_p: float, min_p: float) -> set[int]:
    """The tokens that are left after these processors in this order, worked out plainly."""
    row = logits.astype(np.float64)
    for name in names:
        p = np.exp(row - row.max())
        p /= p.sum()
        if name == "temperature":
            row = row / temperature
        elif name == "top_p":
            order = np.argsort(-p, kind="stable")
            before = np.cumsum(p[order]) - p[order]
            row = np.where(np.isin(np.arange(len(row)), order[before < top_p]), row, CUT)
        else:
            row = np.where(p >= min_p * p.max(), row, CUT)
    return set(np.flatnonzero(np.isfinite(row)).tolist())


@given(
    seed=st.integers(0, 10_000),
    temperature=st.sampled_from([0.3, 0.7, 1.5, 3.0]),
    top_p=st.floats(0.1, 0.99),
    min_p=st.floats(0.01, 0.5),
)
def test_what_is_said_about_the_other_order_is_true(seed, temperature, top_p, min_p):
    logits = random_logits(seed)
    transformers = keep(logits, ["temperature", "top_p", "min_p"], temperature, top_p, min_p)
    llama = keep(logits, ["top_p", "min_p", "temperature"], temperature, top_p, min_p)
    said = _effect({"temperature", "top_p", "min_p"}, temperature, "llama")
    assert said == ("keeps_more" if temperature < 1 else "keeps_fewer")
    assert (len(llama) >= len(transformers)) if said == "keeps_more" else (len(llama) <= len(transformers))
    assert _effect({"temperature", "top_k"}, temperature, "llama") == "keeps_same"
