import re

import pytest
import torch

from engine.experiment import ExperimentError, Grammar
from engine.stages.grammar import GrammarProcessor
from tests.engine.models import ROWS, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
EOS = TOKENIZER.convert_tokens_to_ids("<|im_end|>")
END_OF_TEXT = TOKENIZER.convert_tokens_to_ids("<|endoftext|>")
PROMPT = [40, 41]


def processor(kind: str, source: str) -> GrammarProcessor:
    grammar = Grammar(kind=kind, source=source)  # type: ignore[arg-type]
    return GrammarProcessor(grammar, TOKENIZER, eos_ids=[EOS, END_OF_TEXT], prompt_length=len(PROMPT))


def ids(text: str) -> list[int]:
    return TOKENIZER.encode(text, add_special_tokens=False)


def legal(rule: GrammarProcessor, answer: list[int]) -> set[int]:
    scores = rule(torch.tensor([PROMPT + answer]), torch.zeros(1, ROWS))
    return set(torch.nonzero(scores[0] == 0).flatten().tolist())


def spelled(pattern: str) -> set[int]:
    """Every token whose whole text matches."""
    return {token for token in range(len(TOKENIZER)) if re.fullmatch(pattern, TOKENIZER.decode([token]))}


DIGITS = spelled("[0-9]")


def test_only_what_can_go_on_is_legal() -> None:
    rule = processor("regex", "[0-9]{2}")
    assert legal(rule, []) == spelled("[0-9]{1,2}") > DIGITS
    assert rule.legal == len(spelled("[0-9]{1,2}"))
    assert legal(rule, ids("1")) == DIGITS
    assert not rule.ended(ids("1"))
    assert rule.ended(ids("12"))
    assert EOS in legal(rule, ids("12"))
    assert not legal(rule, ids("12")) & DIGITS


def test_the_grammar_may_end_or_go_on() -> None:
    rule = processor("regex", "[0-9]{1,3}")
    assert legal(rule, ids("1")) == spelled("[0-9]{1,2}") | {EOS, END_OF_TEXT}
    assert not rule.ended(ids("1"))


def test_the_state_follows_from_the_ids_whatever_came_before() -> None:
    rule = processor("lark", 'start: "a" start "b" | "c"')
    sequences = ["", "a", "aa", "aac", "aacb", "aa", "a", "ac", "", "aaac", "aacbb"]
    for text in sequences:
        answer = [token for char in text for token in ids(char)]
        fresh = processor("lark", 'start: "a" start "b" | "c"')
        assert legal(rule, answer) == legal(fresh, answer), text
        assert rule.ended(answer) == fresh.ended(answer)


def test_json_schema() -> None:
    rule = processor("json_schema", '{"type": "object", "properties": {"name": {"type": "string"}}}')
    opening = ids("{")[0]
    first = legal(rule, [])
    assert opening in first
    assert EOS not in first
    assert all(TOKENIZER.decode([token]).startswith("{") for token in first)


def test_an_end_of_sequence_token_may_always_be_forced_and_is_never_fed() -> None:
    rule = processor("regex", "[0-9]{3}")
    assert rule.allows([], EOS)
    assert rule.allows([], ids("7")[0])
    assert not rule.allows([], ids("x")[0])
    assert legal(rule, [*ids("7"), EOS]) == spelled("[0-9]{1,2}")


@pytest.mark.parametrize(
    ("kind", "source", "message"),
    [
        ("regex", "[0-9", "unclosed character class"),
        ("lark", "start: foo", 'unknown name: "foo"'),
        ("json_schema", '{"type": 3}', "type must be a string"),
        ("json_schema", "{nope", "key must be a string"),
    ],
)
def test_what_does_not_compile_comes_with_the_compilers_message(kind: str, source: str, message: str) -> None:
    with pytest.raises(ExperimentError, match=message) as caught:
        processor(kind, source)
    assert caught.value.path == "grammar.source"


def test_a_long_message_of_the_compiler_is_cut() -> None:
    """It quotes the line it stopped at."""
    with pytest.raises(ExperimentError, match="unknown name") as caught:
        processor("lark", f"start: {'x' * 3_000}")
    assert len(str(caught.value)) < 500


def test_a_grammar_that_cannot_be_followed_is_told_in_one_line() -> None:
    """A schema that is only itself compiles, and has no first token."""
    rule = processor("json_schema", '{"$ref":"#"}')
    with pytest.raises(ExperimentError) as caught:
        rule.allowed([])
    assert str(caught.value) == "grammar.source: the grammar cannot be followed: NoExtensionBias"


def test_an_answer_outside_the_grammar_is_an_error() -> None:
    with pytest.raises(ExperimentError, match="left the grammar"):
        legal(processor("regex", "[0-9]{3}"), ids("x"))


def test_rows_that_no_token_owns_are_never_legal() -> None:
    rule = processor("lark", "start: /(.|\\n)*/")
    assert max(legal(rule, [])) < len(TOKENIZER)
