"""What a model makes of its table of embeddings: whether the output head is the same storage, and by how much a row is
scaled before the first layer reads it.
"""

import weakref

import torch

from engine import kv_cache
from engine.anatomy import Anatomy, anatomy
from engine.model import LoadedModel
from engine.probes.embedding_table import row_norms, table_of
from engine.stages.forward import forward
from engine.stages.inputs import make_inputs

#: What may differ between the first layer's input and a scaled row, relative to it, before it counts as another thing.
ROUNDING = 0.02


def is_tied(parts: Anatomy) -> bool:
    """True where the head's matrix lies at the same address as the table: one storage, read twice."""
    table, head = table_of(parts.embedding), parts.head.weight
    return isinstance(head, torch.Tensor) and (head.data_ptr(), head.shape) == (table.data_ptr(), table.shape)


#: By model, as long as it lives.
_SCALES: "weakref.WeakKeyDictionary[torch.nn.Module, float | None]" = weakref.WeakKeyDictionary()


def scale_of(loaded: LoadedModel) -> float | None:
    """What the first layer gets of a row, as a factor: measured once, on the longest row alone at position 0.

    A learned position is taken away first. None where what is left is no multiple of the row (a norm or a projection
    stands between, or something else is added).
    """
    if loaded.model not in _SCALES:
        _SCALES[loaded.model] = _measured_scale(loaded)
    return _SCALES[loaded.model]


def _measured_scale(loaded: LoadedModel) -> float | None:
    parts = anatomy(loaded.model)
    token = int(row_norms(parts.embedding).argmax())
    inputs = make_inputs((token,), past=0, device=loaded.device)
    entered = forward(loaded.model, inputs, kv_cache.new_cache(loaded.model.config), states=True).states[0][-1].float()
    row = table_of(parts.embedding)[token].float()
    if parts.positions is not None:
        entered = entered - parts.positions(inputs.position_ids)[0, 0].float()
    if entered.shape != row.shape:
        return None
    factor = float(entered @ row / (row @ row))
    rest = float((entered - factor * row).norm() / entered.norm())
    return factor if rest <= ROUNDING else None


def head_cosine(parts: Anatomy, token: int) -> float | None:
    """Cosine of a token's row with its row in the head; None where the head has rows of another length."""
    row, head = table_of(parts.embedding)[token].float(), parts.head.weight
    if not isinstance(head, torch.Tensor) or head.shape[1] != row.shape[0]:
        return None
    with torch.inference_mode():
        return float(torch.cosine_similarity(row, head[token].float(), dim=0))
