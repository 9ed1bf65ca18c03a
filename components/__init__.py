"""The panels, in the order of the pipeline."""

from components import prompt, run_table, sampling, tensors, tokens

PANELS = (prompt, tokens, tensors, sampling, run_table)
