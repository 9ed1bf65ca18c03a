"""When a turn ends, and the evidence for it."""

import pytest

from engine.stages.detokenizer import StopMatch
from engine.stages.stopping import StopRule

RULE = StopRule(prompt_tokens=10, max_new_tokens=5, context=100, eos_ids=(2, 7))
MATCH = StopMatch("END", index=1, start=4, end=7)


def test_nothing_holds() -> None:
    assert RULE.check(token_id=3, new_tokens=4) is None


@pytest.mark.parametrize("eos", [2, 7])
def test_any_of_several_eos_ids(eos: int) -> None:
    assert RULE.check(token_id=eos, new_tokens=1) == ("eos", {"token_id": eos, "also": []})


def test_eos_is_not_seen_by_a_loop_that_does_not_watch_for_it() -> None:
    blind = StopRule(prompt_tokens=10, max_new_tokens=5, context=100)
    assert blind.check(token_id=2, new_tokens=1) is None


def test_stop_string_names_the_string_and_its_place() -> None:
    evidence = {"string": "END", "index": 1, "start": 4, "end": 7, "also": []}
    assert RULE.check(token_id=3, new_tokens=1, match=MATCH) == ("stop_string", evidence)


def test_grammar_end() -> None:
    assert RULE.check(token_id=3, new_tokens=1, grammar_ended=True) == ("grammar_end", {"token_id": 3, "also": []})


def test_length_names_the_limit_of_the_experiment() -> None:
    evidence = {"limit": "max_new_tokens", "max_new_tokens": 5, "new_tokens": 5, "also": []}
    assert RULE.check(token_id=3, new_tokens=5) == ("length", evidence)


def test_the_context_ends_when_every_position_has_its_token() -> None:
    rule = StopRule(prompt_tokens=97, max_new_tokens=50, context=100)
    assert rule.check(token_id=3, new_tokens=2) is None
    evidence = {"limit": "context", "context": 100, "prompt_tokens": 97, "new_tokens": 3, "also": []}
    assert rule.check(token_id=3, new_tokens=3) == ("length", evidence)


def test_where_several_hold_the_first_in_the_order_of_generate_is_the_reason() -> None:
    found = RULE.check(token_id=2, new_tokens=5, match=MATCH, grammar_ended=True)
    assert found is not None
    assert (found[0], found[1]["also"]) == ("length", ["stop_string", "eos", "grammar_end"])
    found = RULE.check(token_id=2, new_tokens=1, match=MATCH, grammar_ended=True)
    assert found is not None
    assert (found[0], found[1]["also"]) == ("stop_string", ["eos", "grammar_end"])
