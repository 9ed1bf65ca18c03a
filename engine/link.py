"""An experiment and the place to look at, as a short text for an address: `?run=<text>`.

The text is a version, a point, and base64url without padding of: CRC-32 of the rest (4 bytes, big end first), then raw
deflate, with the preset dictionary below, of UTF-8 JSON. The JSON is the experiment without the fields that have their
default, and `at`, the place, without the fields that have none. Nothing else is in a link.
"""

import base64
import json
import re
import zlib
from collections.abc import Collection
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from engine.experiment import Experiment, ExperimentError, decoded, first_error, parse_experiment
from engine.said import said
from engine.values import Value

VERSION = 1

#: Of a link's text. With it an address has at most 6 KB, its host and path included.
MAX_CHARACTERS = 6_000
#: Of the JSON inside, before it is packed: its bytes, and its values (numbers, texts, lists, objects) in all.
MAX_BYTES, MAX_VALUES = 32_000, 4_000
#: Of the JSON inside: a valid one nests 3 deep.
MAX_DEPTH = 4

Count = Annotated[int, Field(ge=0, lt=2**31)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]


class Link(Value):
    """What is run, and what is looked at: a step of the answer, or else a position of the context; None is the newest.

    Names are only known to be plain names: whether there is such a station or lesson is for the page to know.
    """

    experiment: Experiment
    turn: Count = 0
    step: Count | None = None
    position: Count | None = None
    layer: Count = 0
    head: Count = 0
    figure: Name | None = None
    operation: Name | None = None
    station: Name | None = None
    language: Name | None = None
    lesson: Name | None = None
    note: Count | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.step is not None and self.position is not None:
            raise ValueError(said("step_or_position"))
        return self


def link_to_text(link: Link) -> str:
    """The link as text of URL-safe characters. Raises `ExperimentError` where it does not fit, with both numbers."""
    data = link.experiment.model_dump(mode="json", exclude_defaults=True)
    place = link.model_dump(mode="json", exclude={"experiment"}, exclude_defaults=True)
    data |= {"at": place} if place else {}
    plain = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    if len(plain) > MAX_BYTES:
        raise ExperimentError("", said("link_bytes", limit=MAX_BYTES, count=len(plain)))
    if _values(data) > MAX_VALUES:
        raise ExperimentError("", said("link_values", limit=MAX_VALUES, count=_values(data)))
    linked = sealed(_deflated(plain))
    if len(linked) > MAX_CHARACTERS:
        raise ExperimentError("", said("link_characters", limit=MAX_CHARACTERS, count=len(linked)))
    return linked


def link_from_text(text: str, *, models: Collection[str], tools: Collection[str]) -> Link:
    """The inverse of `link_to_text`; nothing is run, loaded or asked for. Raises `ExperimentError` in plain words."""
    data = decoded(_inflated(_opened(text)))
    if not isinstance(data, dict):
        raise ExperimentError("", said("link_empty"))
    if _values(data) > MAX_VALUES:
        raise ExperimentError("", said("link_too_many", limit=MAX_VALUES, count=_values(data)))
    place = data.pop("at", {})
    try:
        experiment = parse_experiment(data, models=models, tools=tools)
        if not isinstance(place, dict) or "experiment" in place:
            raise ExperimentError("at", said("link_place"))
        return Link.model_validate({"experiment": experiment, **place})
    except ValidationError as error:
        refused = first_error(error)
    except ExperimentError as error:
        refused = error
    raise ExperimentError(
        "", said("link_experiment", where=f"{refused.path}: " if refused.path else "", reason=refused.message)
    ) from None


def sealed(packed: bytes) -> str:
    """Packed bytes as a link's text: the version, then the bytes with their checksum."""
    whole = zlib.crc32(packed).to_bytes(4, "big") + packed
    return f"{VERSION}.{base64.urlsafe_b64encode(whole).rstrip(b'=').decode()}"


def _opened(text: str) -> bytes:
    """The packed bytes of a link's text, checked to be all there."""
    if len(text) > MAX_CHARACTERS:
        raise ExperimentError("", said("link_too_long", limit=MAX_CHARACTERS, count=len(text)))
    version, point, body = text.partition(".")
    if not (point and re.fullmatch("[1-9][0-9]{0,5}", version)):
        raise ExperimentError("", said("link_foreign"))
    if int(version) > VERSION:
        raise ExperimentError("", said("link_newer", version=int(version), known=VERSION))
    try:
        whole = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
    except ValueError:  # also where it is not ASCII
        raise _damaged() from None
    if int.from_bytes(whole[:4], "big") != zlib.crc32(whole[4:]):
        raise _damaged()
    return whole[4:]


def _deflated(plain: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, DICTIONARY)
    return packer.compress(plain) + packer.flush()


def _inflated(packed: bytes) -> str:
    """The text inside; what unpacks to more than is allowed is not unpacked further."""
    unpacker = zlib.decompressobj(-15, DICTIONARY)
    try:
        plain = unpacker.decompress(packed, MAX_BYTES + 1)
        text = plain[:MAX_BYTES].decode("utf-8") if len(plain) <= MAX_BYTES else None
    except (zlib.error, UnicodeDecodeError):
        raise _damaged() from None
    if text is None:
        raise ExperimentError("", said("link_bomb", limit=MAX_BYTES))
    if not unpacker.eof or unpacker.unused_data:
        raise _damaged()
    return text


def _damaged() -> ExperimentError:
    return ExperimentError("", said("link_damaged"))


def _values(data: Any) -> int:
    """How many values there are in the lists and objects of `data`; what is nested deeper than a link is refused."""
    waiting, count = [(data, 1)], 1
    while waiting:
        value, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise ExperimentError("", said("link_nested"))
        count += len(value)
        parts = value.values() if isinstance(value, dict) else value
        waiting += [(part, depth + 1) for part in parts if isinstance(part, dict | list)]
    return count


#: What experiments have in common, the most common last. A part of version 1: any change makes old links unreadable.
DICTIONARY = (
    b'"mistake":"mask_not_extended""history_reencoded""eos_not_watched""obey_marks_in_content":true'
    b'"typical_p":"suppress_tokens":["bad_words":["no_repeat_ngram_size":"tool_choice":"required"'
    b'"order":"llama.cpp""order":["repetition_penalty","no_repeat_ngram","bad_words","min_new_tokens",'
    b'"suppress_tokens","grammar","temperature","top_k","top_p","min_p","typical_p"]'
    b'"grammar":{"kind":"lark","source":"start: "kind":"regex","source":"'
    b'"kind":"json_schema","source":"{\\"type\\":\\"object\\",\\"properties\\":{\\"name\\":{\\"type\\":\\"string\\"},'
    b'{\\"type\\":\\"integer\\"}},\\"required\\":[\\""}'
    b'"context":{"strategy":"sliding_window","positions":"restart""drop_middle""summary""drop_oldest""keep_system"'
    b',"max_tokens":"clock":"2026-01-01T12:00:00Z","tools":["calculator","clock","units","elements"],'
    b'"do_sample":false,"min_p":0.05,"min_new_tokens":"stop_strings":["\\n\\n"],"follow_ups":["'
    b'"forced":[{"turn":1,"step":,"token_id":},{"step":"prompt":"'
    b"The capital of China is Beijing. The capital of France is What is Why does How many Write a Explain the "
    b"You are a helpful assistant. Answer in one sentence. "
    b'"},{"role":"tool","content":"qwen2.5-0.5b-instruct"{"version":1,"model":"smollm2-135m-instruct","messages":['
    b'{"role":"system","content":"You are a helpful AI assistant named SmolLM, trained by Hugging Face"},'
    b'{"role":"user","content":"What is the capital of France?"},{"role":"assistant","content":""}],'
    b'"sampling":{"temperature":0.8,"temperature":0.7,"top_k":20,"top_p":0.9,"repetition_penalty":1.1,"seed":1},'
    b'"stop":{"max_new_tokens":64},"at":{"turn":1,"step":"position":"layer":"head":'
    b'"figure":"entropy","operation":"scores","lesson":"note":"language":"zh"'
    b'"station":"attention""lens""processors""sampling""kv_cache""}}'
)
