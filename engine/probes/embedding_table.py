"""The table of embeddings as a whole: the norm of every row, and which rows point the same way as given vectors.

The rows are gone through in pieces, so that no second table is ever held.
"""

import weakref
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from engine.trace import Floats, Ints

#: Numbers of the table that are turned to float32 at a time: 16 MB.
PIECE = 4 << 20

#: Rows shorter than this have no direction.
NO_LENGTH = 1e-12

#: Norms by table, float32: 4 bytes a row, as long as the model lives.
_NORMS: "weakref.WeakKeyDictionary[nn.Module, Floats]" = weakref.WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Near:
    """The k rows that point most alike, the most alike first, the lower id first where two are equal."""

    ids: Ints  # [k]
    cosines: Floats  # [k]


def table_of(embedding: nn.Module) -> torch.Tensor:
    """The rows of an embedding module [rows, hidden], as stored."""
    weight = embedding.weight
    assert isinstance(weight, torch.Tensor)
    return weight


def row_norms(embedding: nn.Module) -> Floats:
    """The Euclidean norm of every row [rows], worked out once for a model and kept with it."""
    found = _NORMS.get(embedding)
    if found is None:
        table = table_of(embedding)
        with torch.inference_mode():
            found = torch.cat([piece.float().norm(dim=-1) for piece in _pieces(table)]).numpy(force=True)
        _NORMS[embedding] = found
    return found


def row_cosines(embedding: nn.Module, vectors: torch.Tensor) -> Floats:
    """Cosine of every row with v vectors [v, hidden]: [v, rows] float32, NaN where either has no length."""
    table = table_of(embedding)
    with torch.inference_mode():
        vectors = vectors.float()
        lengths = vectors.norm(dim=-1)
        units = vectors / lengths.clamp(min=NO_LENGTH)[:, None]
        units[lengths <= NO_LENGTH] = torch.nan
        products = torch.cat([piece.float() @ units.T for piece in _pieces(table)]).T.numpy(force=True)
    norms = row_norms(embedding)
    with np.errstate(divide="ignore", invalid="ignore"):
        cosines = np.where(norms > NO_LENGTH, products / norms, np.float32(np.nan))
    found: Floats = np.clip(cosines, -1, 1)
    return found


def nearest(cosines: Floats, count: int, leave_out: tuple[int, ...] = ()) -> Near:
    """The `count` largest of cosines [rows]; rows without a direction and those of `leave_out` are none of them."""
    usable = np.where(np.isnan(cosines), -np.inf, cosines)
    usable[list(leave_out)] = -np.inf
    count = min(count, int(np.isfinite(usable).sum()))
    if count == 0:
        return Near(np.empty(0, np.int32), np.empty(0, np.float32))
    border = np.partition(usable, -count)[-count]
    among = np.flatnonzero(usable >= border)
    ids = among[np.argsort(-usable[among], kind="stable")][:count]
    return Near(ids.astype(np.int32), usable[ids].astype(np.float32))


def _pieces(table: torch.Tensor) -> tuple[torch.Tensor, ...]:
    found: tuple[torch.Tensor, ...] = table.split(max(1, PIECE // table.shape[1]))
    return found
