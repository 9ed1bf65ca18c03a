"""The neurons of one layer at one position."""

from dataclasses import dataclass

from engine.trace import Floats, Ints


@dataclass(frozen=True)
class Sparsity:
    """How few neurons of one layer do the work. A push is |activation| × length of the neuron's column."""

    neurons: int
    positive: int  # neurons with an activation above 0
    clear: int  # neurons with at least CLEAR of the strongest push
    half: int  # fewest neurons with half of the sum of squared pushes


@dataclass(frozen=True, eq=False)
class FeedForward:
    """One layer at one position: the k neurons with the strongest push, best first, and t tokens of each either way.

    Effects are on logits before any softcap, logit scale included, with the scales of this position's norms held fixed:
    they add up, and they are direct ones (what later layers make of the neuron is not in them).
    """

    turn: int
    position: int
    layer: int
    by_layer: tuple[Sparsity | None, ...]  # [L], None where a layer has no list of neurons
    neuron_ids: Ints  # [k]
    activations: Floats  # [k]
    lengths: Floats  # [k], of the columns
    pushes: Floats  # [k]
    raised_ids: Ints  # [k, t], tokens whose logit the neuron raises most here, best first
    raised: Floats  # [k, t], by how much
    lowered_ids: Ints  # [k, t], lowest first
    lowered: Floats  # [k, t]
    token_bytes: dict[int, bytes]  # of every id above; b"" for a row that no token owns
    curve_counts: Ints  # [c], rising numbers of the strongest neurons
    curve_shares: Floats  # [c], their share of the sum of squared pushes
    target_id: int  # the token that comes next, or the model's best guess
    target_bytes: bytes
    target_chosen: bool
    target_effects: Floats  # [k], of each neuron on the target's logit
    target_total: float  # of the whole feed-forward, biases included
    mover_id: int  # the neuron that moved the target most, up or down
    mover_effect: float
    mover_rank: int  # by push, 1 = strongest
    output_norm: float  # of the feed-forward's own output
    has_bias: bool
    max_difference: float  # of the sum over all neurons (and the bias) from that output

    @property
    def sparsity(self) -> Sparsity:
        """Of this layer."""
        found = self.by_layer[self.layer]
        assert found is not None
        return found
