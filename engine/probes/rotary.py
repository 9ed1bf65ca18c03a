"""Rotary positions: by what angle each pair of dimensions of a query or key is turned at each position.

After Su et al. 2021, "RoFormer" (arXiv 2104.09864). All of it is read from what the model's own rotary module gives for
positions, so that scaled variants (linear, llama3, YaRN, …) show as they are.
"""

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import nn

from engine.anatomy import Anatomy, AnatomyError, anatomy
from engine.answers.rotary import Rotary, Turning
from engine.conversation import Conversation
from engine.probes.inside import context_of
from engine.probes.turning import angles_of, cos_sin, pair_distance, turns
from engine.probes.windowed import ahead
from engine.said import said
from engine.trace import Ints

#: Positions whose angles are given.
SHOWN = 256


def rotary(conversation: Conversation, *, turn: int | None = None, position: int | None = None) -> Rotary:
    """Angles at up to 256 positions, what the model was told of `position` (None: the last one fed) among them.

    No forward. Raises `ExperimentError` for a turn or position that is not there, `AnatomyError` for a model that has
    no rotary module.
    """
    turn, context = context_of(conversation, turn, position)
    facts, here = conversation.loaded.facts, len(context) - 1
    parts = anatomy(conversation.loaded.model)
    shift = ahead(conversation, turn, here)
    told = here + shift
    first = max(0, told + 1 - SHOWN)
    shown = np.arange(first, first + min(SHOWN, facts.context), dtype=np.int32)
    return Rotary(
        turn=turn,
        position=here,
        head_dim=facts.head_dim,
        context=facts.context,
        positions=shown,
        turnings=tuple(_turning(parts, kind, layers, shown, told) for kind, layers in kinds(parts).items()),
        ahead=shift,
    )


def kinds(parts: Anatomy) -> dict[str | None, tuple[int, ...]]:
    """The layers that turn alike, by the config's name for them; None where all that turn do. Raises `AnatomyError`."""
    if parts.rotary is None:
        key = "turns_nothing" if isinstance(parts.positions, nn.Module) else "no_rotary_module"
        raise AnatomyError(said(key, model=type(parts.model).__name__))
    config = _config(parts)
    given = getattr(config, "rope_parameters", None) or {}
    layers = tuple(block.index for block in parts.blocks if turns(parts, block.index))
    if not layers:
        raise AnatomyError(said("no_layer_turns", model=type(parts.model).__name__))
    if "layer_type" not in inspect.signature(parts.rotary.forward).parameters or not _by_kind(given):
        return {None: layers}
    names = config.layer_types
    found: dict[str | None, tuple[int, ...]] = {}
    for name in dict.fromkeys(names):
        alike = tuple(layer for layer in layers if names[layer] == name)
        if given.get(name) and alike:
            found[name] = alike
    return found


def _turning(parts: Anatomy, kind: str | None, layers: tuple[int, ...], shown: Ints, told: int) -> Turning:
    config = _config(parts)
    cos, sin = cos_sin(parts, kind, [0, 1, told, *shown.tolist()])
    angles = angles_of(cos, sin)
    given = getattr(config, "rope_parameters", None) or {}
    named: Mapping[str, Any] = given if kind is None else given[kind]
    return Turning(
        kind=kind,
        layers=layers,
        variant=str(named.get("rope_type", "default")),
        theta=named.get("rope_theta"),
        factor=named.get("factor"),
        rotated=cos.shape[-1],
        apart=pair_distance(parts, layers[0], cos, sin),
        frequencies=angles[1],
        scaling=float(cos[0, 0, 0]),  # the cosine of no turn at all
        angles=angles[3:],
        here=angles[2],
    )


def _by_kind(given: Mapping[str, Any]) -> bool:
    return any(isinstance(value, Mapping) for value in given.values())


def _config(parts: Anatomy) -> Any:
    return parts.model.config.get_text_config(decoder=True)
