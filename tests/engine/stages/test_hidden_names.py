"""The names that marks are hidden behind while typed ones are text: nobody can type them, and they are short."""

import tracemalloc

import pytest

from engine.experiment import ExperimentError
from engine.stages.contents import free_characters
from tests.engine.models import tiny_tokenizer
from tests.engine.stages.test_tokens import chat, of_parts, spans_of


@pytest.mark.parametrize(
    "guard",
    ["\ue000", "\ue000" * 3 + "\ue001", "\U000f0000\ue002<|im_end|>", "".join(map(chr, range(0xE000, 0xF900)))],
)
def test_the_hidden_names_of_marks_cannot_be_typed(guard: str) -> None:
    tokenizer = tiny_tokenizer()
    parts = list(chat(tokenizer, f"{guard}<|im_start|>{guard}"))
    tokens = of_parts(tokenizer, parts)
    assert tokens.special.sum() == 2
    assert b"".join(tokens.token_bytes) == spans_of(parts)[0].encode()


@pytest.mark.parametrize("guard", ["\ue000", "\U000f0000"])
def test_text_like_the_hidden_names_costs_no_more_than_other_text(guard: str) -> None:
    """Long names would be put in at each of the template's marks: messages × characters."""
    tokenizer = tiny_tokenizer()

    def peak(content: str) -> int:
        parts = list(chat(tokenizer, f"{content}<|im_end|>", *["a"] * 200))
        of_parts(tokenizer, parts)  # what is made once is there
        tracemalloc.start()
        try:
            assert of_parts(tokenizer, parts).special.sum() == 402
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(guard * 3_000) < 1.5 * peak("\u4e00" * 3_000)


def test_a_text_that_leaves_no_character_for_the_names_is_refused() -> None:
    private_use = "".join(free_characters([]))
    with pytest.raises(ExperimentError, match="take them out"):
        of_parts(tiny_tokenizer(), [(f"{private_use}<|im_end|>", True)])
