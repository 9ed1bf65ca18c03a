"""100,000 broken links, seeded: each is opened or refused in one plain line, in little time and little memory.

Time is that of the thread (`time.thread_time`), measured for every link, so that neither a busy machine nor the
collection of other tests' garbage counts. Memory is the peak of Python's own allocations (`tracemalloc`, which slows
everything down), measured for one link in fifty and for every bomb; for all others it is bounded by construction: at
most 6,000 characters come in, at most 32,000 bytes are unpacked, and what they hold is checked for depth and for its
number of values before it is taken apart.
"""

import base64
import gc
import random
import time
import tracemalloc
from collections import Counter

import pytest

from engine.experiment import ExperimentError
from engine.link import Link, link_from_text, link_to_text
from tests.engine.link_damage import ALPHABET, BOMBS, KINDS, SOUND
from tests.engine.random_experiments import MODELS, TOOLS

LINKS = 100_000
SECONDS = 0.050
BYTES = 20_000_000


@pytest.fixture(autouse=True, scope="module")
def _others_garbage_is_left_alone() -> None:
    gc.collect()
    gc.freeze()


def outcome(text: str) -> Link | str:
    """The link, or the reason why there is none; anything but the one refusal goes up and fails the test."""
    try:
        return link_from_text(text, models=MODELS, tools=TOOLS)
    except ExperimentError as refused:
        return str(refused)


def test_broken_links_are_refused_in_plain_words_and_little_time() -> None:
    rng = random.Random(5)
    kinds = rng.choices(list(KINDS), list(KINDS.values()), k=LINKS)
    slowest, reasons = 0.0, Counter[str]()
    for kind in kinds:
        text = kind(rng)
        begun = time.thread_time()
        found = outcome(text)
        slowest = max(slowest, time.thread_time() - begun)
        if isinstance(found, Link):  # the damage hit a text or a number and left an experiment
            assert outcome(link_to_text(found)) == found
            reasons["opened"] += 1
        else:
            assert 10 < len(found) < 600
            assert found.isprintable()
            reasons[next((known for known in REASONS if known in found), found)] += 1
    assert set(reasons) == {*REASONS, "opened"}
    assert slowest < SECONDS


REASONS = ("cannot be run here", "is damaged", "no link that", "newer", "at most 6,000", "unpacks to more",
           "nested too deeply", "not valid JSON", "4,000 values", "holds no experiment")  # fmt: skip


@pytest.mark.parametrize("text", BOMBS, ids=range(len(BOMBS)))
def test_a_bomb_takes_little_memory_and_time(text: str) -> None:
    begun = time.thread_time()
    outcome(text)
    assert time.thread_time() - begun < SECONDS
    assert peak(text) < BYTES


def test_broken_links_take_little_memory() -> None:
    rng = random.Random(6)
    for kind in rng.choices(list(KINDS), list(KINDS.values()), k=LINKS // 50):
        assert peak(kind(rng)) < BYTES


def peak(text: str) -> int:
    """Bytes that Python allocates at most at a time while it opens the link."""
    tracemalloc.start()
    try:
        outcome(text)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_checksum_finds_every_single_wrong_character() -> None:
    text = SOUND[0]
    for place in range(2, len(text) - 1):  # the last carries bits that stand for nothing
        for letter in ALPHABET:
            if letter != text[place]:
                assert "is damaged" in str(outcome(text[:place] + letter + text[place + 1 :]))


def test_padding_and_foreign_characters_in_base64_are_refused() -> None:
    data = base64.urlsafe_b64encode(b"xxxxxxx").decode()
    for text in (
        f"1.{data}",
        f"1.{data}==",
        "1.",
        "1.A",
        SOUND[0] + "===",
        SOUND[0] + " ",
        SOUND[0].replace("-", "+") + "+",
    ):
        assert "is damaged" in str(outcome(text))
