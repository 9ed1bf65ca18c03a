"""Merges in order against the tokenizers' own encodings, and one word worked out by hand."""

import itertools
import random
import unicodedata

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from engine.answers.merges import Merge, Merges
from engine.experiment import ExperimentError
from engine.model import LoadedModel
from engine.probes.merges import MAX_TEXT, merges_of
from tests.engine.models import tiny_tokenizer
from tests.engine.qwen import qwen_oracle, qwen_tokenizer, ranks

WORDS = (
    "strawberry", " strawberry", "Donaudampfschifffahrtsgesellschaft", "internationalization", "你好世界", "天气预报",
    "வணக்கம்", "தமிழ்நாடு", "👍🏽", "👨\u200d👩\u200d👧", "🇫🇷", "naïve", "e\u0301", "  two", "\n\n", "1234567", "don't",
    "0x7f", "Ωμέγα", "مرحبا", "aaaaaaaaaaaaaaaaa", "x" * 60, "\u200b", "ﬁ", "",
)  # fmt: skip
LETTERS = "abcdefghijklmnopqrstuvwxyz" * 3 + "ABC  -_'.,19é你好வண😀"


def random_words(count: int) -> list[str]:
    rng = random.Random(4)
    return ["".join(rng.choices(LETTERS, k=rng.randint(1, 14))) for _ in range(count)]


def check(found: Merges) -> None:
    assert found.agrees
    assert tuple(piece for word in found.words for piece in word.pieces) == found.own
    for word in found.words:
        pieces = word.start
        for merge in word.merges:
            # The pair stands there, no pair of a lower rank does, and joining it gives what is said.
            assert (merge.left, merge.right) in set(itertools.pairwise(pieces))
            assert "".join(merge.pieces) == "".join(pieces) == word.text
            assert len(merge.pieces) < len(pieces)
            assert merge.left + merge.right in merge.pieces
            pieces = merge.pieces
        assert pieces == word.pieces


def test_the_embedded_tokenizer_merges_as_it_encodes(embedded: LoadedModel) -> None:
    for text in (*WORDS, *random_words(300)):
        check(merges_of(embedded.tokenizer, text))


def test_qwen_merges_as_it_encodes() -> None:
    for text in (*WORDS, *random_words(300)):
        found = merges_of(qwen_tokenizer(), text)
        check(found)
        assert list(found.ids) == qwen_oracle().encode_ordinary(unicodedata.normalize("NFC", text))
        for word in found.words:
            if word.taken_whole:
                assert word.merges == ()
                assert word.pieces == (word.text,)


def test_one_word_by_hand() -> None:
    # The pairs of the list, lowest rank first: "th" (1) before "he" (2) and "hi" (3), then "the" (0).
    model = models.BPE(
        {piece: index for index, piece in enumerate(["t", "h", "e", "i", "th", "he", "hi", "the"])},
        [("th", "e"), ("t", "h"), ("h", "e"), ("h", "i")],
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(model))
    (word,) = merges_of(tokenizer, "thethih").words
    assert word.start == ("t", "h", "e", "t", "h", "i", "h")
    assert word.merges == (
        Merge(1, "t", "h", ("th", "e", "th", "i", "h")),
        Merge(0, "th", "e", ("the", "th", "i", "h")),
    )
    assert word.pieces == ("the", "th", "i", "h")


def test_a_vocabulary_without_a_character_falls_back_to_its_bytes() -> None:
    vocabulary = {f"<0x{byte:02X}>": byte for byte in range(256)} | {
        "▁": 256,
        "h": 257,
        "i": 258,
        "hi": 259,
        "▁hi": 260,
    }
    backend = Tokenizer(models.BPE(vocabulary, [("h", "i"), ("▁", "hi")], byte_fallback=True))
    backend.normalizer = normalizers.Replace(" ", "▁")
    backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    found = merges_of(PreTrainedTokenizerFast(tokenizer_object=backend), " hi你")
    check_pieces = ("▁hi", "<0xE4>", "<0xBD>", "<0xA0>")
    assert found.agrees
    assert found.words[0].pieces == check_pieces
    assert [merge.rank for merge in found.words[0].merges] == [0, 1]


def test_unigram_and_wordpiece_say_that_they_do_not_merge() -> None:
    unigram = Tokenizer(models.Unigram([("<unk>", 0.0), ("ab", -1.0), ("a", -2.0), ("b", -2.5), ("c", -3.0)], 0, False))
    found = merges_of(PreTrainedTokenizerFast(tokenizer_object=unigram), "abc")
    assert (found.kind, found.words[0].pieces, found.words[0].scores) == ("unigram", ("ab", "c"), (-1.0, -3.0))
    wordpiece = Tokenizer(models.WordPiece({"[UNK]": 0, "un": 1, "##do": 2}, unk_token="[UNK]"))
    wordpiece.pre_tokenizer = pre_tokenizers.Whitespace()
    found = merges_of(PreTrainedTokenizerFast(tokenizer_object=wordpiece), "undo")
    assert (found.kind, found.words[0].pieces, found.words[0].merges) == ("wordpiece", ("un", "##do"), ())


def test_a_mark_in_the_text_is_said_to_differ() -> None:
    found = merges_of(tiny_tokenizer(), "a<|im_end|>b")
    assert found.own == ("a", "<|im_end|>", "b")
    assert not found.agrees


def test_a_long_text_is_refused(embedded: LoadedModel) -> None:
    with pytest.raises(ExperimentError, match=f"at most {MAX_TEXT} characters, this has {MAX_TEXT + 1}"):
        merges_of(embedded.tokenizer, "a" * (MAX_TEXT + 1))


def test_merges_are_in_the_order_in_which_training_made_them() -> None:
    # Qwen numbers its tokens in that order, so the ids of what the merges make must order them as the ranks do.
    (word,) = merges_of(qwen_tokenizer(), "internationalizationed").words
    assert len(word.merges) > 10
    by_id = sorted(word.merges, key=lambda merge: ranks()[(merge.left + merge.right).encode("ascii")])
    assert by_id == sorted(word.merges, key=lambda merge: merge.rank)
