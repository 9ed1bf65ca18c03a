"""The panels, in the order of the pipeline."""

from components import kv_cache, prompt, run_table, sampling, stopping, tensors, tokens

PANELS = (prompt, tokens, tensors, sampling, stopping, kv_cache, run_table)
