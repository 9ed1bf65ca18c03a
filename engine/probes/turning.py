"""The turn itself, done by the model's own module and function: vectors as they would be at any position."""

import copy
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

from engine.anatomy import Anatomy, AnatomyError
from engine.said import said
from engine.trace import Floats


def cos_sin(parts: Anatomy, kind: str | None, positions: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines [1, n, rotated] float32 that the model's rotary module gives for positions.

    A copy of the module is asked: some variants remember the longest text they have seen.
    """
    module = parts.rotary
    assert module is not None
    device = next((buffer.device for buffer in module.buffers()), torch.device("cpu"))
    places = torch.tensor([list(positions)], device=device)
    like = torch.zeros(1, dtype=torch.float32, device=device)
    options = {} if kind is None else {"layer_type": kind}
    with torch.inference_mode():
        cos, sin = copy.deepcopy(module)(like, position_ids=places, **options)
    return cos, sin


def angles_of(cos: torch.Tensor, sin: torch.Tensor) -> Floats:
    """The angle of each pair [n, c] in (−π, π], of cosines and sines [1, n, 2c] that hold each angle twice.

    The second half repeats the first (a b a b), or each stands beside its double (a a b b).
    """
    half = cos.shape[-1] // 2
    repeats = torch.equal(cos[..., :half], cos[..., half:])
    once = slice(0, half) if repeats else slice(0, None, 2)
    found: Floats = torch.atan2(sin[0, :, once], cos[0, :, once]).numpy(force=True)
    return found


def turns(parts: Anatomy, layer: int) -> bool:
    """Whether a layer of a model with a rotary module turns at all: a few families leave some out (SmolLM3)."""
    return bool(getattr(parts.blocks[layer].attention, "use_rope", True))


def turned(
    parts: Anatomy, layer: int, vectors: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, *, back: bool = False
) -> torch.Tensor:
    """Vectors [n, head_dim] turned by the n angles of `cos` and `sin` [1, n, rotated], or turned `back`.

    Dimensions beyond the turned ones stay. Raises `AnatomyError` for a layer that turns by a way of its own.
    """
    apply = _function(parts, layer)
    rotated = cos.shape[-1]
    moving = vectors[None, None, :, :rotated].float()
    with torch.inference_mode():
        if back:  # the opposite turn; what a scaled cosine and sine stretch twice is taken out
            stretch = cos[..., :1].square() + sin[..., :1].square()
            result = apply(moving, cos, -sin) / stretch[:, None]
        else:
            result = apply(moving, cos, sin)
        return torch.cat([result[0, 0], vectors[:, rotated:].float()], dim=-1)


def pair_distance(parts: Anatomy, layer: int, cos: torch.Tensor, sin: torch.Tensor) -> int | None:
    """How far apart the two dimensions of the first pair lie: where a vector along dimension 0 turns to.

    None where the layer turns by a way of its own. `cos` and `sin` [1, n, rotated] are of positions 0, 1, ….
    """
    along = torch.zeros(1, cos.shape[-1], device=cos.device)
    along[0, 0] = 1
    try:
        result = turned(parts, layer, along, cos[:, 1:2], sin[:, 1:2])[0]
    except AnatomyError:
        return None
    return int(result[1:].abs().argmax()) + 1


def _function(parts: Anatomy, layer: int) -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]:
    """The function by which the layer's attention turns queries and keys [1, heads, n, rotated]."""
    attention = parts.blocks[layer].attention
    found: Any = getattr(sys.modules[type(attention).__module__], "apply_rotary_pos_emb", None)
    if not turns(parts, layer):
        raise AnatomyError(said("layer_turns_nothing", layer=layer, model=type(parts.model).__name__))
    if found is None or hasattr(attention, "qk_rope_head_dim"):
        raise AnatomyError(said("layer_turns_otherwise", layer=layer, model=type(parts.model).__name__))
    names = list(inspect.signature(found).parameters)
    if names[:4] == ["q", "k", "cos", "sin"]:
        return lambda vectors, cos, sin: found(vectors, vectors, cos, sin)[0]
    if names[1:3] == ["cos", "sin"]:  # one tensor at a time (Gemma 3n)
        return lambda vectors, cos, sin: found(vectors, cos, sin)
    raise AnatomyError(said("turns_otherwise", model=type(parts.model).__name__))
