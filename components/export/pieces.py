"""Values packed small: every text stands once, in pieces that many values share, and all of it is deflated.

Deflate looks back 32 KB only, so what repeats farther apart is found here. The way back is in assets/js/record_data.js.
"""

import base64
import json
import re
import zlib
from typing import Any

from components.widgets.host import item

#: A text shorter than this stays where it is.
LONG = 40
#: Texts are cut where the parts of a chart or the rows of a table end.
SEAM = re.compile(r"(?<=\],)|(?<=\n)")
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


def _cut(text: str) -> list[str]:
    """The text in pieces of at least LONG characters, but for the last."""
    pieces, begun = [], ""
    for part in SEAM.split(text):
        begun += part
        if len(begun) >= LONG:
            pieces.append(begun)
            begun = ""
    return [*pieces, begun] if begun else pieces


def unpack(value: Any, pieces: list[str]) -> Any:
    """The way back from `Pieces.pack`."""
    if isinstance(value, dict):
        if KEY in value:
            return "".join(pieces[number] for number in value[KEY])
        return {name: unpack(part, pieces) for name, part in value.items()}
    return [unpack(part, pieces) for part in value] if isinstance(value, list) else value


def deflated(data: bytes) -> str:
    """Bytes as base64 of a zlib stream: no character of it means anything in HTML."""
    return base64.b64encode(zlib.compress(data, 9)).decode("ascii")


def squeezed(value: Any) -> str:
    """A plain value as JSON, deflated."""
    return deflated(item(value).encode("utf-8"))


def read(text: str) -> Any:
    """The way back from `squeezed`."""
    return json.loads(zlib.decompress(base64.b64decode(text)))
