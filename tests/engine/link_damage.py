"""Ways to break a link: its text, its packed bytes, the JSON inside, its values; and bombs, each made by a seed."""

import json
import random
from collections.abc import Callable
from typing import Any

from engine.experiment import parse_experiment
from engine.link import MAX_BYTES, VERSION, Link, _deflated, _inflated, _opened, link_to_text, sealed
from tests.engine.random_experiments import MODELS, TOOLS

Change = Callable[[random.Random], str]

SOURCES: list[dict[str, Any]] = [
    {"messages": [{"role": "user", "content": "What is the capital of France?"}]},
    {
        "messages": [{"role": "system", "content": "Answer in JSON."}, {"role": "user", "content": "你好 👋🏽 \x00"}],
        "follow_ups": ["Another one.", "And one more."],
        "grammar": {"kind": "json_schema", "source": '{"type": "object", "properties": {"a": {"type": "string"}}}'},
        "sampling": {"temperature": 0.8, "top_p": 0.95, "order": ["grammar", "top_p", "temperature"], "seed": 2**62},
        "stop": {"max_new_tokens": 48, "stop_strings": ["\n\n"]},
        "forced": [{"turn": 1, "step": 3, "token_id": 7042}, {"step": 0, "token_id": 1}],
    },
    {
        "prompt": "Once upon a time",
        "context": {"strategy": "sliding_window", "max_tokens": 40},
        "mistake": "eos_not_watched",
    },
    {
        "messages": [{"role": "user", "content": f"Question {number}: what is {number} * 3?"} for number in range(40)],
        "tools": ["calculator", "clock"],
        "clock": "2026-11-29T09:00:00+01:00",
        "sampling": {"suppress_tokens": list(range(0, 3_000, 70)), "bad_words": ["no", "never"], "do_sample": False},
    },
]  # fmt: skip


def _link(source: dict[str, Any]) -> str:
    experiment = parse_experiment({"version": 1, "model": MODELS[1]} | source, models=MODELS, tools=TOOLS)
    return link_to_text(
        Link(experiment=experiment, turn=1, step=5, layer=24, station="lens", language="zh", lesson="paris")
    )


SOUND = [_link(source) for source in SOURCES]
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def plain_of(text: str) -> bytes:
    return _inflated(_opened(text)).encode()


def packed(plain: bytes) -> str:
    """Any bytes as a link with a checksum that holds."""
    return sealed(_deflated(plain))


# Kinds of damage: to the text, to the packed bytes, to the JSON inside, to its values.


def flipped(rng: random.Random) -> str:
    text = list(rng.choice(SOUND))
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(text))
        text[place] = chr(ord(text[place]) ^ 1 << rng.randrange(7))
    return "".join(text)


def retyped(rng: random.Random) -> str:
    text = list(rng.choice(SOUND))
    for _ in range(rng.randint(1, 4)):
        text[rng.randrange(len(text))] = rng.choice(ALPHABET)
    return "".join(text)


def cut(rng: random.Random) -> str:
    text = rng.choice(SOUND)
    first, last = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
    return rng.choice((text[:first], text[last:], text[first:last], text[:first] + text[last:]))


def spliced(rng: random.Random) -> str:
    one, other = rng.choice(SOUND), rng.choice(SOUND)
    return one[: rng.randrange(len(one))] + other[rng.randrange(len(other)) :]


def foreign(rng: random.Random) -> str:
    letter = lambda: chr(rng.choice((rng.randrange(128), rng.randrange(0x300), rng.randrange(0x110000))))  # noqa: E731
    noise = "".join(letter() for _ in range(rng.randrange(40)))
    place = rng.randrange(len(SOUND[0]))
    return rng.choice((noise, f"{VERSION}.{noise}", SOUND[0][:place] + noise + SOUND[0][place:]))


def other_version(rng: random.Random) -> str:
    version = rng.choice((0, 2, 3, 99, -1, 10**6, "01", "1e3", "１", "²", "", " 1", "9" * 5_000))
    return f"{version}.{rng.choice(SOUND).partition('.')[2]}"


def repacked(rng: random.Random) -> str:
    """Damaged deflate under a checksum that holds."""
    data = bytearray(_opened(rng.choice(SOUND)))
    for _ in range(rng.randint(1, 5)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return sealed(bytes(data[: rng.randint(1, len(data))] if rng.random() < 0.3 else data))


def rewritten(rng: random.Random) -> str:
    """Damaged JSON, well packed."""
    data = bytearray(plain_of(rng.choice(SOUND)))
    for _ in range(rng.randint(1, 4)):
        first, last = sorted((rng.randrange(len(data)), rng.randrange(len(data))))
        how = rng.randrange(4)
        if how == 0:
            data[first] = rng.randrange(256)
        elif how == 1:
            data[first:last] = b""
        elif how == 2:
            data[first:first] = rng.choice(
                (b"{", b"[", b"]", b"}", b'"', b",", b"\\ud800", b"\x00", b"\xff", b"1e999", b"-")
            )
        else:
            data[first:first] = data[last : last + rng.randrange(1, 20)]
        if not data:
            data = bytearray(b"{}")
    return packed(bytes(data))


HOSTILE = (
    *("NaN", "Infinity", "-Infinity", "1e999", "-0.0", "1e-400", "true", "null", "-1", "2147483648"),
    *(
        "9" * 400,
        "9" * 5_000,
        '""',
        '"\\ud800"',
        '"\\udc00\\ud800"',
        '"\\u0000"',
        '"../../etc"',
        '"http://example.com"',
    ),
    *("[]", "{}", "[[]]", '{"":{}}', '{"a":1}', '[{"role":"user"}]', "[null,null]", '["calculator","rm"]', '"torch"'),
    *("[" * 30 + "]" * 30, '{"a":' * 30 + "1" + "}" * 30, '"' + "é" * 2_000 + '"'),
    *('"<img src=x onerror=alert(1)>"', '"${alert(1)}"'),
)


def mistaken(rng: random.Random) -> str:
    """One value of the experiment or of the place is something else, or one field has another name."""
    data = json.loads(plain_of(rng.choice(SOUND)))
    holder: Any = data
    while True:
        key = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        deeper = holder[key]
        if not (isinstance(deeper, dict | list) and deeper) or rng.random() < 0.4:
            break
        holder = deeper
    if isinstance(holder, dict) and rng.random() < 0.2:
        holder[rng.choice(("experiment", "__class__", "at", "x" * 300, "\ud800", "version", "station"))] = holder.pop(
            key
        )
    else:
        holder[key] = "@@"
    text = json.dumps(data).replace('"@@"', rng.choice(HOSTILE))
    return packed(text.encode())


BOMBS = (
    sealed(_deflated(b" " * 5_000_000)),
    sealed(_deflated(b"[" * 4_000_000)),
    packed(b" " * (MAX_BYTES + 1)),
    packed(b" " * MAX_BYTES),
    packed(b"[" * MAX_BYTES),
    packed(b"[" * 15_000 + b"]" * 15_000),
    packed(b'{"a":' * 4_500 + b"1" + b"}" * 4_500),
    packed(b"[" * 900 + b"]" * 900),
    packed(b'{"version":1,"model":"tiny","messages":' + b"[" * 900 + b"]" * 900 + b"}"),
    packed(b'{"version":1,"model":"tiny","messages":[' + b",".join([b"1"] * 15_000) + b"]}"),
    packed(b'{"version":1,"model":"tiny","messages":[' + b",".join([b"{}"] * 10_000) + b"]}"),
    packed(b'{"version":1,"model":"tiny","messages":[' + b",".join([b'{"role":"user","content":""}'] * 1_000) + b"]}"),
    packed(b'{"version":1,"model":"tiny","prompt":"","sampling":{"order":[' + b",".join([b"[]"] * 10_000) + b"]}}"),
    packed(b'{"version":1,"model":"tiny","prompt":"","forced":[' + b",".join([b'{"step":0}'] * 1_000) + b"]}"),
    packed(b'{"version":1,"model":"tiny","prompt":"","forced":[' + b",".join([b'{"step":0,"token_id":1}'] * 9) + b"]}"),
    packed(b'{"version":1,"model":"tiny","prompt":"' + b"\\u0000" * 5_000 + b'"}'),
    packed(b'{"model":' + b"9" * 30_000 + b"}"),
    packed(b'{"model":"' + b"a" * 30_000 + b'","version":1,"prompt":""}'),
    packed(b"{" + b",".join(b'"%x":1' % number for number in range(1_500)) + b"}"),
    packed(b"{" + b",".join([b'"a":1'] * 5_000) + b"}"),
    packed(b'{"at":' * 5_000),
    packed(b'{"at":{"at":' + b"[" * 9_000),
    "1." + "A" * 5_990,
    "1." + "A" * 200_000,
    "1" * 200_000,
)  # fmt: skip


def bomb(rng: random.Random) -> str:
    return rng.choice(BOMBS)


KINDS: dict[Change, float] = {
    flipped: 14,
    retyped: 14,
    cut: 14,
    spliced: 10,
    foreign: 10,
    other_version: 5,
    repacked: 13,
    rewritten: 10,
    mistaken: 10,
    bomb: 0.2,
}
