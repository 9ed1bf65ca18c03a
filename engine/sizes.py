"""Sizes that families tell each in words of their own: read alike of a config's file and of a model that is loaded."""

from collections.abc import Callable
from typing import Any

FEED_FORWARD = ("mlp", "feed_forward", "ffn")
#: From the neurons of a feed-forward back to the stream.
DOWN = ("down_proj", "c_proj", "fc2", "fc_out", "dense_4h_to_h", "w2")


def kv_heads(get: Callable[[str], Any], heads: int) -> int:
    """Heads of keys and values, by the config's fields that `get` gives; a field that is not there is None.

    Some families (Falcon, GPT-BigCode) say by a switch that all queries share one.
    """
    if get("multi_query") and not get("new_decoder_architecture"):
        return 1
    return int(get("num_key_value_heads") or get("num_kv_heads") or heads)


def is_down_projection(name: str) -> bool:
    """True for a module that takes in a layer's neurons, by its dotted name; an expert's are not the layer's."""
    parts = ["", *name.split(".")]
    owner, leaf = parts[-2:]
    if leaf not in DOWN or "experts" in parts:
        return False
    return owner in FEED_FORWARD or owner.isdecimal()  # in a layer itself: OPT


def keeps_keys(layer_type: str) -> bool:
    """True for a kind of layer, as configs name it, whose cache grows with every position."""
    return layer_type.endswith("attention") and layer_type != "linear_attention"
