"""The panels, in the order of the pipeline."""

from components.attention import panel as attention
from components.kv_cache import panel as kv_cache
from components.lens import panel as lens
from components.prompt import panel as prompt
from components.residual import panel as residual
from components.run_table import panel as run_table
from components.sampling import panel as sampling
from components.stopping import panel as stopping
from components.tensors import panel as tensors
from components.tokens import panel as tokens

PANELS = (prompt, tokens, tensors, residual, attention, lens, sampling, stopping, kv_cache, run_table)
