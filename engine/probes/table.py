"""Every probe by its name."""

from collections.abc import Callable
from typing import Any

from engine.probes.arithmetic import arithmetic
from engine.probes.attention import attention
from engine.probes.attention_matrix import attention_matrix
from engine.probes.chances import chances
from engine.probes.cold_turn import cold_turn
from engine.probes.distribution import distribution
from engine.probes.embedding import embedding
from engine.probes.feed_forward import feed_forward
from engine.probes.layer import layer
from engine.probes.lens import lens
from engine.probes.lens_map import lens_map
from engine.probes.memory import memory
from engine.probes.merges import merges
from engine.probes.model import model
from engine.probes.norms import norms
from engine.probes.padding import padding
from engine.probes.parity import parity
from engine.probes.policy import policy
from engine.probes.positions import positions
from engine.probes.relative_phase import relative_phase
from engine.probes.residual import residual
from engine.probes.rotary import rotary
from engine.probes.time_in_prompt import time_in_prompt
from engine.probes.tokenizers import tokenizers
from engine.probes.uncached import uncached

#: What `Runtime.probe` knows: functions of a conversation and of named arguments.
PROBES: dict[str, Callable[..., Any]] = {
    "distribution": distribution,
    "chances": chances,
    "cold_turn": cold_turn,
    "time_in_prompt": time_in_prompt,
    "arithmetic": arithmetic,
    "attention": attention,
    "attention_matrix": attention_matrix,
    "feed_forward": feed_forward,
    "embedding": embedding,
    "layer": layer,
    "lens": lens,
    "lens_map": lens_map,
    "model": model,
    "memory": memory,
    "merges": merges,
    "norms": norms,
    "padding": padding,
    "parity": parity,
    "policy": policy,
    "positions": positions,
    "relative_phase": relative_phase,
    "residual": residual,
    "rotary": rotary,
    "tokenizers": tokenizers,
    "uncached": uncached,
}
