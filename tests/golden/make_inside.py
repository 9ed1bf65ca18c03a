"""Makes inside.json: `python -m tests.golden.make_inside`. What transformers alone says of the inside of one forward.

The embedded model, loaded with `AutoModelForCausalLM` and eager attention, reads the prompt of facts.json once, without
a cache. Attention is `output_attentions`; the stream is `output_hidden_states`, its end what the final norm is given;
what a part adds is what its module returns, all at the last position. Nothing of the program's own is used but the
place where the converted weights lie.
"""

import json
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from engine.catalog import load_catalog
from engine.embedded import embedded_folder

FOLDER = Path(__file__).parent
OUT = FOLDER / "inside.json"
HEADS_IN_FULL = ((9, 4), (17, 0), (23, 6))


def main() -> None:
    known = json.loads((FOLDER / "facts.json").read_text("utf-8"))["smollm2-135m-instruct-q4_1"]["weights_embedded"]
    entry = load_catalog().find("smollm2-135m-instruct")
    folder = embedded_folder(entry.source, title=entry.title)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    ids = AutoTokenizer.from_pretrained(folder)(known["prompt"], return_tensors="pt").input_ids
    kept: dict[str, list[torch.Tensor]] = {"attention": [], "feed_forward": [], "end": []}
    for layer in model.model.layers:
        layer.self_attn.register_forward_hook(lambda _, given, got: kept["attention"].append(got[0][0, -1]))
        layer.mlp.register_forward_hook(lambda _, given, got: kept["feed_forward"].append(got[0, -1]))
    model.model.norm.register_forward_pre_hook(lambda _, given: kept["end"].append(given[0][0, -1]))
    with torch.inference_mode():
        output = model(ids, output_hidden_states=True, output_attentions=True, use_cache=False)
        stream = torch.stack([*(state[0, -1] for state in output.hidden_states[:-1]), kept["end"][0]])
        found = figures(model, ids, stream, kept, output, known["paris_id"])
    OUT.write_text(json.dumps(found, separators=(",", ":")) + "\n", "utf-8")


def figures(model: Any, ids: Any, stream: Any, kept: Any, output: Any, paris: int) -> dict[str, Any]:
    """Rounded to what a test compares."""
    logits = model.lm_head(model.model.norm(stream))
    rows = torch.softmax(logits, dim=-1)
    end = stream[-1]
    scale = torch.rsqrt(end.pow(2).mean() + model.config.rms_norm_eps)
    reader = model.model.norm.weight * scale * model.lm_head.weight[paris]  # of a part of the stream: its share
    attention, feed_forward = torch.stack(kept["attention"]), torch.stack(kept["feed_forward"])
    last_rows = torch.stack([layer[0, :, -1] for layer in output.attentions])  # [layers, heads, positions]
    return {
        "token_ids": ids[0].tolist(),
        "paris_ranks": (logits > logits[:, paris, None]).sum(-1).add(1).tolist(),
        "paris_probabilities": rounded(rows[:, paris], 6),
        "top_ids": logits.argmax(-1).tolist(),
        "stream_norms": rounded(stream.norm(dim=-1), 3),
        "normed_norm": round(float(output.hidden_states[-1][0, -1].norm()), 3),
        "attention_norms": rounded(attention.norm(dim=-1), 3),
        "feed_forward_norms": rounded(feed_forward.norm(dim=-1), 3),
        "attention_shares": rounded(attention @ reader, 4),
        "feed_forward_shares": rounded(feed_forward @ reader, 4),
        "embedding_share": round(float(stream[0] @ reader), 4),
        "paris_logit": round(float(output.logits[0, -1, paris]), 4),
        "on_first": rounded(last_rows[:, :, 0], 5),
        "on_self": rounded(last_rows[:, :, -1], 5),
        "rows": {f"{layer}.{head}": rounded(last_rows[layer, head], 5) for layer, head in HEADS_IN_FULL},
    }


def rounded(values: torch.Tensor, digits: int) -> Any:
    return [rounded(value, digits) if value.dim() else round(float(value), digits) for value in values]


if __name__ == "__main__":
    main()
