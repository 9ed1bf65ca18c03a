"""Pieces, bytes and look-up of single tokens."""

import gc
import time
import weakref

import pytest
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

from engine.model import LoadedModel
from engine.stages.vocabulary import BYTE_OF_CHAR, vocabulary
from tests.engine.models import tiny_tokenizer
from tests.engine.qwen import qwen_tokenizer
from tests.engine.stages.texts import fallback_tokenizer, metaspace_tokenizer, swallowing_tokenizer


def test_the_byte_alphabet_is_that_of_gpt2() -> None:
    assert {char: byte for byte, char in bytes_to_unicode().items()} == BYTE_OF_CHAR


def test_every_token_of_the_embedded_model_decodes_to_its_bytes(embedded: LoadedModel) -> None:
    tokenizer = embedded.tokenizer
    words = vocabulary(tokenizer)
    texts = tokenizer.batch_decode([[token_id] for token_id in range(len(tokenizer))])
    for token_id, text in enumerate(texts):
        assert words.bytes(token_id).decode("utf-8", "replace") == text


def test_paris_is_found_with_and_without_its_space(embedded: LoadedModel) -> None:
    words = vocabulary(embedded.tokenizer)
    with_space, without = 7042, embedded.tokenizer.convert_tokens_to_ids("Paris")
    assert words.find(" Paris") == (with_space, without)
    assert words.find("Paris") == (without, with_space)
    assert words.find("<|im_end|>") == (2,)
    assert words.find("\n")[0] == 198
    assert words.find("no such token") == words.find("") == ()
    assert words.find("\ud800") == words.find("\ufffd") == (24_211,)


def test_sentencepiece_tokens_are_found_by_what_they_stand_for() -> None:
    tokenizer = fallback_tokenizer()
    words = vocabulary(tokenizer)
    assert words.find(" the") == (tokenizer.convert_tokens_to_ids("▁the"),)
    assert words.find("\n") == (tokenizer.convert_tokens_to_ids("<0x0A>"),)
    assert words.bytes(tokenizer.convert_tokens_to_ids("<0xE2>")) == b"\xe2"
    assert words.bytes(tokenizer.convert_tokens_to_ids("▁▁")) == b"  "
    assert words.bytes(tokenizer.convert_tokens_to_ids("中")) == "中".encode()
    assert vocabulary(metaspace_tokenizer()).find("capital") == (
        metaspace_tokenizer().convert_tokens_to_ids("▁capital"),
    )


def test_marks_are_added_tokens_that_are_not_white_space() -> None:
    tokenizer = swallowing_tokenizer()
    words = vocabulary(tokenizer)
    kinds = {
        token.content: (words.is_special(token_id), words.is_mark(token_id)) for token_id, token in words.added.items()
    }
    assert kinds == {
        "<|end|>": (True, True),
        "<|user|>": (True, True),
        "<call>": (False, True),
        "    ": (False, False),
    }


def test_a_decoder_that_does_more_than_join_bytes_is_refused() -> None:
    backend = Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
    backend.decoder = decoders.WordPiece()
    with pytest.raises(ValueError, match="WordPiece.*cannot be followed byte by byte"):
        vocabulary(PreTrainedTokenizerFast(tokenizer_object=backend))
    backend = Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
    with pytest.raises(ValueError, match="cannot be followed byte by byte"):
        vocabulary(PreTrainedTokenizerFast(tokenizer_object=backend))


def test_one_vocabulary_a_tokenizer_and_none_after_it() -> None:
    assert vocabulary(tiny_tokenizer()) is vocabulary(tiny_tokenizer())
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tiny_tokenizer().backend_tokenizer)
    gone = weakref.ref(vocabulary(tokenizer))
    del tokenizer
    gc.collect()
    assert gone() is None


def test_twenty_five_lookups_cost_nothing_beside_a_step() -> None:
    words = vocabulary(qwen_tokenizer())
    start = time.thread_time()
    for first in range(0, 2_500, 25):
        for token_id in range(first, first + 25):
            words.bytes(token_id)
            words.piece(token_id)
            words.is_special(token_id)
    assert (time.thread_time() - start) / 100 < 1e-3
