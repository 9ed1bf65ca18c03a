"""Makes paris.trace.json: `python -m tests.golden.make_paris_trace`. A run of two turns on the embedded model.

Run it again when the trace's shape changes. Times and the last digits of logits are those of the machine.
"""

import json
from pathlib import Path

from engine.catalog import load_catalog
from engine.conversation import Conversation
from engine.experiment import Experiment
from engine.model import load
from engine.trace_json import trace_to_json

OUT = Path(__file__).with_name("paris.trace.json")
EXPERIMENT = Experiment.model_validate(
    {
        "version": 1,
        "model": "smollm2-135m-instruct",
        "messages": [{"role": "user", "content": "What is the capital of France?"}],
        "follow_ups": ["Say <|im_end|> in 中文 👍🏽"],
        "sampling": {"temperature": 0.7, "top_k": 20, "top_p": 0.9, "repetition_penalty": 1.1, "seed": 1},
        "stop": {"max_new_tokens": 12},
    }
)


def main() -> None:
    catalog = load_catalog()
    conversation = Conversation(load(catalog.find(EXPERIMENT.model), device="cpu", dtype="float32"), EXPERIMENT)
    while conversation.advance():
        pass
    text = json.dumps(trace_to_json(conversation.trace), ensure_ascii=False, separators=(",", ":"))
    OUT.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
