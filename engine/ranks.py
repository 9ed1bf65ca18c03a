"""Byte-pair encoding by ranks alone: enough to count the tokens of a plain text without a model's tokenizer files."""

import base64
import functools
import heapq
import importlib.metadata
from collections.abc import Mapping
from pathlib import Path

from tokenizers import Regex
from tokenizers.normalizers import NFC
from tokenizers.pre_tokenizers import Split

from engine.catalog import RanksSource


class Ranks:
    """Cuts text as the tokenizer does that these ranks belong to; control marks are ordinary characters here."""

    def __init__(self, ranks: Mapping[bytes, int], pattern: str) -> None:
        self._ranks = ranks
        self._normalizer = NFC()
        self._split = Split(Regex(pattern), "isolated")

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        stretches = self._split.pre_tokenize_str(self._normalizer.normalize_str(text))
        return [token for stretch, _ in stretches for token in self._cut(stretch.encode())]

    def _cut(self, data: bytes) -> list[int]:
        """The neighbours whose join has the lowest rank are joined, the first of several, until no join has one."""
        if data in self._ranks:
            return [self._ranks[data]]
        after = list(range(1, len(data) + 1))  # where the piece that starts here ends
        before = list(range(-1, len(data)))  # where the piece that ends here starts
        waiting: list[tuple[int, int, int, int]] = []  # rank of a join, where its pieces start, where it ends

        def consider(left: int, right: int) -> None:
            if left >= 0 and right < len(data):
                rank = self._ranks.get(data[left : after[right]])
                if rank is not None:
                    heapq.heappush(waiting, (rank, left, right, after[right]))

        for place in range(len(data) - 1):
            consider(place, place + 1)
        while waiting:
            _, left, right, end = heapq.heappop(waiting)
            if after[left] != right or after[right] != end:
                continue  # one of them was joined otherwise meanwhile
            after[left], before[end], after[right] = end, left, -1
            consider(before[left], left)
            consider(left, end)
        places, place = [], 0
        while place < len(data):
            places.append(self._ranks[data[place : after[place]]])
            place = after[place]
        return places


@functools.cache
def load_ranks(source: RanksSource) -> Ranks | None:
    """The ranks of an installed package, read once; None where it is not installed."""
    try:
        path = importlib.metadata.distribution(source.package).locate_file(source.file)
    except importlib.metadata.PackageNotFoundError:
        return None
    lines = (line.split() for line in Path(str(path)).read_bytes().splitlines() if line)
    return Ranks({base64.b64decode(piece): int(rank) for piece, rank in lines}, source.pattern)
