"""Values packed small: every text stands once, in pieces that many values share, and all of it is deflated.

Deflate looks back 32 KB only, so what repeats farther apart is found here. The way back is in assets/js/record_data.js.
"""

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from components.widgets.host import item

#: A text shorter than this stays where it is.
LONG = 100
#: Texts are cut where the parts of a chart or the rows of a table end.
SEAM = re.compile(r"(?<=\],)|(?<=\n)")
#: Printable ASCII without the space, <, & and backslash; two of 91 signs hold 13 bits.
SIGNS = bytes(code for code in range(33, 127) if chr(code) not in "<&\\")
BITS = 13
#: The key of the numbers of a text's pieces.
KEY = "$"


class Pieces:
    """The pieces of all texts packed so far, in the order in which they first came."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    @property
    def all(self) -> list[str]:
        return list(self._numbers)

    def pack(self, value: Any) -> Any:
        """A plain value with each long text as {"$": [numbers of its pieces]}.

        Raises:
            ValueError: a dict in it has the key "$".
        """
        if isinstance(value, str):
            return {KEY: [self._number(piece) for piece in _cut(value)]} if len(value) >= LONG else value
        if isinstance(value, dict):
            if KEY in value:
                raise ValueError(f"a value has the key {KEY!r}, which marks a text")
            return {name: self.pack(part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [self.pack(part) for part in value]
        return value

    def _number(self, piece: str) -> int:
        return self._numbers.setdefault(piece, len(self._numbers))


def pack_columns(columns: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Each column's different values, which of them stands where, and the pieces of all texts."""
    pieces = Pieces()
    packed: dict[str, Any] = {}
    for name, column in columns.items():
        numbers: dict[str, int] = {}
        values: list[Any] = []
        at = []
        for value in column:
            known = item(value)
            if known not in numbers:
                numbers[known] = len(values)
                values.append(pieces.pack(value))
            at.append(numbers[known])
        packed[name] = {"values": values, "at": at}
    return {"widgets": packed, "pieces": pieces.all}


def _cut(text: str) -> list[str]:
    """The text in pieces of at least LONG characters, but for the last."""
    pieces, begun = [], ""
    for part in SEAM.split(text):
        begun += part
        if len(begun) >= LONG:
            pieces.append(begun)
            begun = ""
    return [*pieces, begun] if begun else pieces


@dataclass(frozen=True)
class Packed:
    """Deflated bytes as text: two of 91 printable signs for 13 bits. `size` counts the bytes, without the filling."""

    text: str
    size: int


def deflated(data: bytes) -> Packed:
    """No sign of the text means anything inside a script element of HTML; base64 would be a twelfth longer."""
    stream = zlib.compress(data, 9)
    bits = np.unpackbits(np.frombuffer(stream, np.uint8))
    filled = np.pad(bits, (0, -len(bits) % BITS)).reshape(-1, BITS)
    numbers = filled @ (1 << np.arange(BITS)[::-1])
    signs = np.stack(np.divmod(numbers, len(SIGNS)), axis=1).ravel()
    return Packed(np.frombuffer(SIGNS, np.uint8)[signs].tobytes().decode("ascii"), len(stream))


def squeezed(value: Any) -> Packed:
    """A plain value as JSON, deflated."""
    return deflated(item(value).encode("utf-8"))


def deflated_size(value: Any) -> int:
    """Bytes that the value takes deflated, before they become signs."""
    return len(zlib.compress(item(value).encode("utf-8"), 6))
