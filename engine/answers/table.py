"""The kind of answer that each probe gives, by the probe's name."""

from engine.answers.arithmetic import Arithmetic
from engine.answers.attention import AttentionAt
from engine.answers.attention_matrix import AttentionMatrix
from engine.answers.chances import Chances
from engine.answers.cold_turn import ColdTurn
from engine.answers.distribution import Distribution
from engine.answers.embedding import Embedding
from engine.answers.feed_forward import FeedForward
from engine.answers.layer import LayerAt
from engine.answers.lens import Lens
from engine.answers.lens_map import LensMap
from engine.answers.memory import Memory
from engine.answers.merges import Merges
from engine.answers.model import Model
from engine.answers.norms import Norms
from engine.answers.padding import Padding
from engine.answers.parity import Parity
from engine.answers.policy import Policy
from engine.answers.positions import Positions
from engine.answers.relative_phase import RelativePhase
from engine.answers.residual import Residual
from engine.answers.rotary import Rotary
from engine.answers.time_in_prompt import TimeInPrompt
from engine.answers.tokenizers import Tokenizers
from engine.answers.uncached import Uncached

ANSWERS: dict[str, type] = {
    "arithmetic": Arithmetic,
    "attention": AttentionAt,
    "attention_matrix": AttentionMatrix,
    "chances": Chances,
    "cold_turn": ColdTurn,
    "distribution": Distribution,
    "embedding": Embedding,
    "feed_forward": FeedForward,
    "layer": LayerAt,
    "lens": Lens,
    "lens_map": LensMap,
    "memory": Memory,
    "merges": Merges,
    "model": Model,
    "norms": Norms,
    "padding": Padding,
    "parity": Parity,
    "policy": Policy,
    "positions": Positions,
    "relative_phase": RelativePhase,
    "residual": Residual,
    "rotary": Rotary,
    "time_in_prompt": TimeInPrompt,
    "tokenizers": Tokenizers,
    "uncached": Uncached,
}
