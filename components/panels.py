"""The panels, in the groups of the rail."""

from components.attention import panel as attention
from components.compare import panel as compare
from components.context import panel as context
from components.embedding import panel as embedding
from components.feed_forward import panel as feed_forward
from components.kv_cache import panel as kv_cache
from components.layer import panel as layer
from components.lens import panel as lens
from components.model import panel as model
from components.prompt import panel as prompt
from components.residual import panel as residual
from components.run_table import panel as run_table
from components.sampling import panel as sampling
from components.stopping import panel as stopping
from components.tensors import panel as tensors
from components.tokens import panel as tokens
from components.tools import panel as tools
from components.turns import panel as turns

#: The life of a token, in the order of the pipeline.
TOKEN = (prompt, tokens, tensors, sampling, stopping, kv_cache, run_table)

#: What is between the tensors and the logits.
INSIDE = (model, embedding, residual, layer, attention, feed_forward, lens)

#: What a chat does over its turns.
CHAT = (turns, context, tools, compare)

PANELS = (*TOKEN, *INSIDE, *CHAT)
