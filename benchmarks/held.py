"""Who holds how many bytes: what is reached from an object, and what is allocated and held by none that is known."""

import dataclasses
import gc
import sys
import tracemalloc
import types
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch

from engine.conversation import Conversation

#: What a walk does not enter: the program itself, which no step makes more of.
_PROGRAM = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.CodeType)


@dataclass
class Held:
    """Bytes by where they lie: Python's and numpy's objects, and torch's storages by address, each once."""

    objects: int = 0
    storages: dict[int, int] = field(default_factory=dict)

    @property
    def tensors(self) -> int:
        return sum(self.storages.values())

    @classmethod
    def by(cls, *roots: Any) -> Self:
        """All that can be reached from the roots, which themselves count."""
        found, seen, waiting = cls(), set[int](), list(roots)
        while waiting:
            item = waiting.pop()
            if id(item) in seen or isinstance(item, _PROGRAM):
                continue
            seen.add(id(item))
            found.objects += sys.getsizeof(item)
            if issubclass(type(item), torch.Tensor):
                found.storages |= _storage(item)
            elif isinstance(item, np.ndarray) and item.base is not None:
                waiting.append(item.base)  # which the collector does not tell: a view holds the whole
            waiting += gc.get_referents(item)
        return found


@dataclass(frozen=True)
class Ledger:
    """The memory of a process with one conversation, by holder."""

    events: int  # what the trace reaches, tensors behind its arrays included
    cache: int  # storages of keys and values, spare room included
    back: int  # what each step is taken back with: above all the state of the random generator, 5 KB
    others: int  # everything else that was allocated since tracemalloc began, and all other tensors

    @classmethod
    def of(cls, conversation: Conversation) -> Self:
        gc.collect()
        trace = Held.by(conversation.trace.events)
        turn = conversation.turn
        cache = Held.by(turn.cache if turn else None)
        back = Held.by(turn._before if turn else None)
        known = cache.storages | trace.storages | back.storages
        alive = _storages(item for item in gc.get_objects() if issubclass(type(item), torch.Tensor))
        beside = sum(size for place, size in alive.items() if place not in known)
        # Taken last: what the walks above needed is gone by now.
        others = tracemalloc.get_traced_memory()[0] - trace.objects - back.objects + beside
        return cls(trace.objects + trace.tensors, cache.tensors, back.objects + back.tensors, others)

    def __sub__(self, other: Self) -> Self:
        mine, theirs = dataclasses.astuple(self), dataclasses.astuple(other)
        return type(self)(*(after - before for after, before in zip(mine, theirs, strict=True)))


def _storages(tensors: Iterable[torch.Tensor]) -> dict[int, int]:
    found: dict[int, int] = {}
    for tensor in tensors:
        found |= _storage(tensor)
    return found


def _storage(tensor: torch.Tensor) -> dict[int, int]:
    storage = tensor.untyped_storage()
    return {storage.data_ptr(): storage.nbytes()}
