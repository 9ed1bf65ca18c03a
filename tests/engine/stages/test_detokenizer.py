"""Shown text against the tokenizer's own decoding, and stop strings against a search by brute force."""

import time
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast, StopStringCriteria

from engine.model import LoadedModel
from engine.stages.detokenizer import Detokenizer, Piece, StopMatch
from tests.engine.models import tiny_tokenizer
from tests.engine.qwen import qwen_tokenizer
from tests.engine.stages.texts import (
    CORPUS,
    fallback_tokenizer,
    metaspace_tokenizer,
    swallowing_tokenizer,
    texts,
)

Maker = Callable[[], PreTrainedTokenizerFast]
MAKERS: tuple[Maker, ...] = (
    tiny_tokenizer,
    qwen_tokenizer,
    fallback_tokenizer,
    metaspace_tokenizer,
    swallowing_tokenizer,
)
#: Tokens of the small tokenizer.
WORDS = ("he", "is", "Ġthe", "at", "Ġs", "Ġis", "Ġc", "The", "ap", "Ġcap", "ital", "Ġcapital")
makers = st.sampled_from(MAKERS)


def shown(
    tokenizer: PreTrainedTokenizerFast, ids: Sequence[int], stops: Sequence[str] = ()
) -> tuple[list[str], str, StopMatch | None]:
    """The parts as they appear, the flush, and the stop that ended them."""
    detokenizer = Detokenizer(tokenizer, stops)
    parts: list[str] = []
    for token_id in ids:
        piece = detokenizer.push(token_id)
        parts.append(piece.text)
        if piece.stop:
            return parts, "", piece.stop
    return parts, detokenizer.flush(), None


def whole(tokenizer: PreTrainedTokenizerFast, ids: Sequence[int]) -> str:
    text = tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    assert isinstance(text, str)
    return text


def check_parts(tokenizer: PreTrainedTokenizerFast, ids: Sequence[int]) -> None:
    """What is shown at any time is a beginning of the whole, so it holds no � that the whole lacks."""
    parts, rest, _ = shown(tokenizer, ids)
    assert "".join(parts) + rest == whole(tokenizer, ids)


@pytest.mark.parametrize("text", CORPUS)
def test_the_corpus_on_the_embedded_model(embedded: LoadedModel, text: str) -> None:
    ids = embedded.tokenizer(text, add_special_tokens=False)["input_ids"]
    check_parts(embedded.tokenizer, ids)
    assert "".join(shown(embedded.tokenizer, ids)[0]) == text


@given(makers, texts)
@settings(deadline=None, max_examples=400)
def test_parts_join_to_the_whole(make: Maker, text: str) -> None:
    check_parts(make(), make()(text)["input_ids"])


@given(makers, st.lists(st.floats(0, 1), max_size=30))
@settings(deadline=None, max_examples=400)
def test_any_ids_at_all_join_to_the_whole(make: Maker, places: list[float]) -> None:
    """A model may draw bytes that are no text, special tokens amid a character, and rows that no token owns."""
    check_parts(make(), [int(place * (len(make()) + 2)) for place in places])


@given(st.binary(max_size=30))
@settings(deadline=None)
def test_bad_bytes_show_as_the_tokenizer_shows_them(raw: bytes) -> None:
    fallback = fallback_tokenizer()
    check_parts(fallback, [fallback.convert_tokens_to_ids(f"<0x{byte:02X}>") for byte in raw])
    byte_level = tiny_tokenizer()
    alphabet = [token for token in range(len(byte_level)) if len(byte_level.convert_ids_to_tokens(token)) == 1]
    check_parts(byte_level, [alphabet[byte] for byte in raw])


def test_an_emoji_over_several_tokens_appears_whole(embedded: LoadedModel) -> None:
    ids = embedded.tokenizer("👍🏽")["input_ids"]
    detokenizer = Detokenizer(embedded.tokenizer)
    pieces = [detokenizer.push(token_id) for token_id in ids]
    assert len(ids) == 6
    assert [piece.text for piece in pieces] == ["", "", "👍", "", "", "🏽"]
    assert [piece.held_bytes for piece in pieces] == [2, 3, 0, 2, 3, 0]


def test_half_a_character_at_the_end_is_a_replacement() -> None:
    tokenizer = tiny_tokenizer()
    ids = tokenizer("é")["input_ids"]
    parts, rest, _ = shown(tokenizer, ids[:1])
    assert ("".join(parts), rest) == ("", "�")


# Stop strings


def by_brute_force(text: str, stops: Sequence[str]) -> tuple[str, int | None]:
    """The text before the stop that is complete first (of two that end together the longer), and its start."""
    for end in range(1, len(text) + 1):
        starts = [end - len(stop) for stop in stops if stop and text[:end].endswith(stop)]
        if starts:
            return text[: min(starts)], min(starts)
    return text, None


@given(st.text("ab中", max_size=40), st.lists(st.text("ab中", min_size=1, max_size=6), max_size=5), st.data())
@settings(deadline=None, max_examples=1_000)
def test_stops_agree_with_brute_force(text: str, stops: list[str], data: st.DataObject) -> None:
    tokenizer = tiny_tokenizer()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    borders = [0, *cuts, len(text)]
    ids = [token_id for start, end in pairwise(borders) for token_id in tokenizer(text[start:end])["input_ids"]]
    parts, rest, stop = shown(tokenizer, ids, stops)
    expected, start = by_brute_force(text, stops)
    assert "".join(parts) + rest == expected
    assert (stop.start if stop else None) == start
    if stop:
        assert text[stop.start : stop.end] == stop.string == stops[stop.index]


@given(st.lists(st.sampled_from(["t", "Ġ", "a", *WORDS]), min_size=2, max_size=12), st.data())
@settings(deadline=None, max_examples=150)
def test_it_stops_at_the_token_where_generate_stops(pieces: list[str], data: st.DataObject) -> None:
    """transformers' own criterion on the same ids, with a stop string that occurs in them and one that may not."""
    tokenizer = tiny_tokenizer()
    ids = tokenizer.convert_tokens_to_ids(pieces)
    text = whole(tokenizer, ids)
    start = data.draw(st.integers(0, len(text) - 1))
    stops = [text[start : start + data.draw(st.integers(1, 8))], data.draw(st.text("the ao", min_size=1, max_size=3))]
    criterion = StopStringCriteria(tokenizer, stops)
    detokenizer = Detokenizer(tokenizer, stops)
    for step, token_id in enumerate(ids):
        stop = detokenizer.push(token_id).stop
        expected = bool(criterion(torch.tensor([ids[: step + 1]]), None)[0])
        assert (stop is not None) == expected
        if stop:
            return


@given(st.text("ab", max_size=30), st.lists(st.text("ab", min_size=1, max_size=6), min_size=1, max_size=4))
@settings(deadline=None, max_examples=500)
def test_exactly_what_may_become_a_stop_is_held(text: str, stops: list[str]) -> None:
    """No more is held than the longest end of the text that begins a stop string, and no less."""
    tokenizer = tiny_tokenizer()
    detokenizer = Detokenizer(tokenizer, stops)
    seen = ""
    out = ""
    for char in text:
        piece = detokenizer.push(tokenizer.convert_tokens_to_ids(char))
        seen += char
        out += piece.text
        if piece.stop:
            return
        held = next(tail for cut in range(len(seen) + 1) if any(s.startswith(tail := seen[cut:]) for s in stops))
        assert out == seen[: len(seen) - len(held)]
        assert piece.held_bytes == len(held)


def test_a_stop_inside_two_tokens_shows_nothing_of_itself(embedded: LoadedModel) -> None:
    tokenizer = embedded.tokenizer
    ids = tokenizer("Hello there, Observer")["input_ids"]
    pieces = [tokenizer.decode([token_id]) for token_id in ids]
    stop = pieces[1][-2:] + pieces[2] + pieces[3][:2]
    parts, _, match = shown(tokenizer, ids, ["not there", stop])
    assert "".join(parts) == "".join(pieces[:2])[:-2]
    assert match is not None
    assert (match.string, match.index, match.start) == (stop, 1, len(pieces[0] + pieces[1]) - 2)


def test_a_mark_that_only_begins_a_stop_string_is_shown_and_other_marks_are_not() -> None:
    tokenizer = tiny_tokenizer()
    ids = tokenizer("a<|im_start|>b<|im_end|>c")["input_ids"]
    parts, rest, stop = shown(tokenizer, ids, ["<|im_start|>user"])
    assert ("".join(parts) + rest, stop) == ("a<|im_start|>bc", None)
    parts, rest, stop = shown(tokenizer, ids, ["b<|im_end|>"])
    assert "".join(parts) + rest == "a"
    assert stop == StopMatch("b<|im_end|>", index=0, start=1, end=12)


def test_nothing_comes_after_a_stop() -> None:
    """This token is a space and two bytes of a character: the stop ends amid it."""
    detokenizer = Detokenizer(qwen_tokenizer(), [" "])
    assert detokenizer.push(54_955) == Piece("", 0, StopMatch(" ", index=0, start=0, end=1))
    assert detokenizer.flush() == ""


def test_what_was_held_comes_out_when_it_is_harmless() -> None:
    tokenizer = tiny_tokenizer()
    parts, rest, stop = shown(tokenizer, tokenizer("aab")["input_ids"], ["aabb"])
    assert ("".join(parts), rest, stop) == ("", "aab", None)


def test_pi_does_not_stop_at_the_point() -> None:
    tokenizer = tiny_tokenizer()
    parts, rest, stop = shown(tokenizer, tokenizer("3.14159. Then")["input_ids"], [". "])
    assert ("".join(parts), rest) == ("3.14159", "")
    assert stop is not None


def test_back_restores_the_very_state() -> None:
    tokenizer = tiny_tokenizer()
    detokenizer = Detokenizer(tokenizer, ["👍🏽b"])
    ids = tokenizer("a👍🏽c 👍")["input_ids"]
    states, pieces = [], []
    for token_id in ids:
        states.append(detokenizer.snapshot())
        pieces.append(detokenizer.push(token_id))
    for step in reversed(range(len(ids))):
        detokenizer.restore(states[step])
        assert [detokenizer.push(token_id) for token_id in ids[step:]] == pieces[step:]


def test_a_megabyte_takes_linear_time() -> None:
    """The worst case for a search that starts over: every character nearly completes every string."""
    tokenizer = tiny_tokenizer()
    letter = tokenizer.convert_tokens_to_ids("a")
    stops = ["a" * (199 - index) + "b" for index in range(16)]

    def seconds(length: int) -> float:
        detokenizer = Detokenizer(tokenizer, stops)
        start = time.thread_time()
        shown_length = sum(len(detokenizer.push(letter).text) for _ in range(length))
        assert shown_length == length - 199
        return time.thread_time() - start

    short = min(seconds(125_000) for _ in range(2))
    assert seconds(1_000_000) < 24 * short
