"""Small models whose embedding table is written by hand, or whose config is changed."""

import copy
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig

from engine.model import LoadedModel
from tests.engine.models import tiny, tiny_tokenizer


def with_table(name: str, rows: dict[int, np.ndarray | list[float]], dtype: torch.dtype = torch.float32) -> LoadedModel:
    """A copy of the tiny model of that name with some rows of its table replaced, filled up with zeros."""
    loaded = tiny(name)
    model = copy.deepcopy(loaded.model).to(dtype)
    table = model.get_input_embeddings().weight
    with torch.no_grad():
        for row, numbers in rows.items():
            table[row] = 0
            table[row, : len(numbers)] = torch.tensor(np.asarray(numbers), dtype=dtype)
    return LoadedModel.of(model, loaded.tokenizer, model_id="tiny", title="Written by hand")


def of_config(config: PreTrainedConfig, **changes: Any) -> LoadedModel:
    """A random model of a copy of the config with some fields changed; weights far from trivial, the same each time."""
    fields = config.to_dict() | changes
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = AutoModelForCausalLM.from_config(type(config)(**fields), dtype=torch.float32)
        for label, parameter in model.named_parameters():
            torch.nn.init.normal_(parameter, mean=1.0 if "norm" in label or "ln_" in label else 0.0, std=0.3)
    return LoadedModel.of(model, tiny_tokenizer(), model_id="tiny", title="Of a config")
