"""Tokens and characters: which whole characters share a byte with each token."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

from components.visible import visible_bytes


def is_whole(data: bytes) -> bool:
    """True where the bytes are whole characters."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def characters_touched(pieces: Sequence[bytes]) -> list[str]:
    """For each piece the characters that share a byte with it; what never becomes a character is shown as bytes."""
    data = b"".join(pieces)
    # A character begins at every byte but the continuation bytes 10xxxxxx.
    begins: list[int] = []
    for index, byte in enumerate(data):
        begins.append(index if byte & 0xC0 != 0x80 or not begins else begins[-1])
    begins.append(len(data))
    touched = []
    for start, end in pairwise(accumulate(map(len, pieces), initial=0)):
        completed = next(index for index in range(end, len(begins)) if begins[index] == index)
        touched.append(visible_bytes(data[begins[start] : completed]))
    return touched
