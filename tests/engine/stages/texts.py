"""Texts and tokenizers that have broken other programs."""

import functools

from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

CORPUS = (
    "",
    "The capital of France is Paris.",
    "the the the the",
    "a\n\n  b\t",
    "① 角色  你是一位中文写作助手。\n",
    "பிறந்தநாள் வாழ்த்துக்கள்",
    "👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇫🇷",
    "naïve cafe\u0301 Å A\u030a ﬁ ½",
    "שלום עולם مرحبا \u202eabc\u202c",
    "zero\u200bwidth\u200d\ufeffmark",
    "NUL\x00 bell\x07 escape\x1b[31m",
    "<b>${x}</b> {{ x }} {% raw %} &amp;",
    "𝒳 𐍈 𝔘𝔫𝔦 \U000f0000\U000f0001\U0010fffd",
    "\ufffd",
    "mixed 中文 and தமிழ் and עברית 👍🏽!",
)

texts = st.one_of(
    st.sampled_from(CORPUS),
    st.lists(st.sampled_from(CORPUS), max_size=4).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
)

_LETTERS = "abcdefghijklmnopqrstuvwxyzTCFP.,!中"
_WORDS = ("▁the", "▁capital", "▁is", "▁a")


@functools.cache
def fallback_tokenizer() -> PreTrainedTokenizerFast:
    """Made like Llama 2's: ▁ for a space, one put first; characters it does not know become byte tokens; a BOS."""
    vocab = {mark: index for index, mark in enumerate(("<unk>", "<s>", "</s>"))}
    for piece in [*(f"<0x{byte:02X}>" for byte in range(256)), "▁", "▁▁", *_LETTERS]:
        vocab[piece] = len(vocab)
    merges: list[tuple[str, str]] = [("▁", "▁")]
    for word in _WORDS:
        for length in range(2, len(word) + 1):
            if word[:length] not in vocab:
                vocab[word[:length]] = len(vocab)
                merges.append((word[: length - 1], word[length - 1]))
    backend = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    backend.add_special_tokens(["<unk>", "<s>", "</s>"])
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


@functools.cache
def metaspace_tokenizer() -> PreTrainedTokenizerFast:
    """SentencePiece pieces whose first space is put in, and on decoding taken away, by the Metaspace rule."""
    pieces = ["<unk>", "▁", *_LETTERS, *_WORDS]
    backend = Tokenizer(models.Unigram([(piece, -float(index)) for index, piece in enumerate(pieces)], unk_id=0))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    backend.decoder = decoders.Metaspace(prepend_scheme="first")
    backend.add_special_tokens(["<unk>", "<end>"])
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>", eos_token="<end>")


@functools.cache
def swallowing_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level, its offsets without spaces; marks that swallow white space, and a run of spaces as added token."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    backend.train_from_iterator(CORPUS, trainer)
    backend.post_processor = processors.ByteLevel(trim_offsets=True)
    backend.add_special_tokens([AddedToken("<|end|>", rstrip=True), AddedToken("<|user|>", lstrip=True)])
    backend.add_tokens([AddedToken("    ", normalized=False), AddedToken("<call>", normalized=False)])
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|end|>")
