"""Chat templates in the manner of well-known models, each with a habit of its own."""

import functools

from transformers import PreTrainedTokenizerFast

from tests.engine.models import tiny_tokenizer
from tests.engine.qwen import CHAT_TEMPLATE as QWEN

CHATML = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)

#: Trims contents; a BOS of its own.
LLAMA_3 = (
    "{%- for message in messages %}"
    "{%- set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'"
    " + message['content'] | trim + '<|eot_id|>' %}"
    "{%- if loop.index0 == 0 %}{%- set content = '<|begin_of_text|>' + content %}{%- endif %}"
    "{{- content }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}"
)

#: Always writes a system part, with a date before the system message, which may be empty.
LLAMA_3_DATED = (
    "{{- '<|begin_of_text|>' }}"
    "{%- if messages[0]['role'] == 'system' %}"
    "{%- set system_message = messages[0]['content'] | trim %}{%- set messages = messages[1:] %}"
    "{%- else %}{%- set system_message = '' %}{%- endif %}"
    "{{- '<|start_header_id|>system<|end_header_id|>\\n\\nToday: 26 Jul 2024\\n\\n' + system_message + '<|eot_id|>' }}"
    "{%- for message in messages %}"
    "{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}"
    "{{- message['content'] | trim + '<|eot_id|>' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}"
)

#: Roles user and model in turn, no system role, contents trimmed.
GEMMA = (
    "{{ '<bos>' }}"
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for message in messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% set role = 'model' if message['role'] == 'assistant' else message['role'] %}"
    "{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"
)

#: The system prompt stands in the last user message; no generation prompt.
MISTRAL = (
    "{%- if messages[0]['role'] == 'system' %}"
    "{%- set system = messages[0]['content'] %}{%- set rest = messages[1:] %}"
    "{%- else %}{%- set rest = messages %}{%- endif %}"
    "{{- '<s>' }}"
    "{%- for message in rest %}"
    "{%- if message['role'] == 'user' %}"
    "{%- if loop.last and system is defined %}{{- '[INST] ' + system + '\\n\\n' + message['content'] + '[/INST]' }}"
    "{%- else %}{{- '[INST] ' + message['content'] + '[/INST]' }}{%- endif %}"
    "{%- else %}{{- ' ' + message['content'] + '</s>' }}{%- endif %}"
    "{%- endfor %}"
)

#: Drops the thoughts of answers before the last user message, and writes those after it anew.
THINKING = (
    "{%- set last = namespace(user=0) %}"
    "{%- for message in messages %}{%- if message.role == 'user' %}{%- set last.user = loop.index0 %}{%- endif %}"
    "{%- endfor %}"
    "{%- for message in messages %}"
    "{%- set content = message.content %}"
    "{%- if message.role == 'assistant' and '</think>' in content %}"
    "{%- set thought = content.split('</think>')[0].split('<think>')[-1].strip('\\n') %}"
    "{%- set content = content.split('</think>')[-1].lstrip('\\n') %}"
    "{%- if loop.index0 > last.user %}"
    "{%- set content = '<think>\\n' + thought + '\\n</think>\\n\\n' + content %}{%- endif %}"
    "{%- endif %}"
    "{{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n<think>\\n\\n</think>\\n\\n' }}{%- endif %}"
)

#: Treats a content by its first word, and says nothing of an empty one.
PICKY = (
    "{%- for message in messages %}"
    "{%- if message.content.startswith('<result>') %}{{- 'TOOL ' + message.content + '\\n' }}"
    "{%- elif message.content %}{{- message.role + ': ' + message.content + '\\n' }}{%- endif %}"
    "{%- endfor %}"
)

#: Writes no content at all.
COUNTING = "{%- for message in messages %}{{- message.role + ': ' ~ message.content | length }}{%- endfor %}"

#: Its own words depend on how long a content is.
MEASURING = (
    "{%- for message in messages %}{{- message.role ~ '[' ~ message.content | length ~ ']: ' + message.content }}"
    "{%- endfor %}"
)

#: A system prompt has no marks of its own.
BARE = (
    "{{- '<s>' }}{%- for message in messages %}"
    "{{- (message.role + ': ' if message.role != 'system' else '') + message.content }}{%- endfor %}"
)

TEMPLATES = {
    "chatml": CHATML,
    "qwen": QWEN,
    "llama-3": LLAMA_3,
    "llama-3-dated": LLAMA_3_DATED,
    "gemma": GEMMA,
    "mistral": MISTRAL,
    "thinking": THINKING,
    "picky": PICKY,
    "counting": COUNTING,
    "measuring": MEASURING,
    "bare": BARE,
}


@functools.cache
def templated(name: str | None) -> PreTrainedTokenizerFast:
    """The small tokenizer with one of the templates, or with none."""
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tiny_tokenizer().backend_tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    tokenizer.chat_template = TEMPLATES[name] if name else None
    return tokenizer
