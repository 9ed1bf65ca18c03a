"""TransformerLens' `run_with_cache` beside a plain forward, on the same weights and tokens.

TransformerLens has packages of its own, so it gets an environment of its own, `.venv-bench`, on top of this one: the
same torch and transformers serve both. Where it cannot be had the row is left out, with the reason.
"""

import json
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path
from statistics import median

from benchmarks.figures import Figure

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".venv-bench"
PACKAGE = "transformer-lens==4.3.0"
PATIENCE = 900  # seconds until installing or measuring counts as failed


def measure(*, tokens: int = 256, rounds: int = 5) -> list[Figure]:
    """One row, or none."""
    from benchmarks.model import embedded
    from benchmarks.prompts import prompt_of
    from engine.catalog import load_catalog
    from engine.embedded import embedded_folder

    catalog = load_catalog()
    entry = catalog.find(catalog.default)
    if entry.source is None or entry.source.kind != "embedded":
        return []
    tokenizer = embedded().tokenizer
    ids = tokenizer.encode(prompt_of(tokenizer, tokens), add_special_tokens=False)
    asked = {"folder": str(embedded_folder(entry.source, title=entry.title)), "ids": ids, "rounds": rounds}
    try:
        python = _environment()
        command = [str(python), "-m", "benchmarks.transformer_lens", json.dumps(asked)]
        said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout
    except (subprocess.SubprocessError, OSError) as error:
        detail = str(getattr(error, "stderr", None) or error).strip().splitlines()[-1:]
        print(f"TransformerLens left out: {' '.join(detail)}", file=sys.stderr)
        return []
    found = json.loads(said.splitlines()[-1])
    note = f"{found['cached'] * 1e3:.1f} / {found['plain'] * 1e3:.1f} ms; {found['kept']} tensors kept"
    name = f"TransformerLens run_with_cache / plain forward, {tokens} tokens"
    return [Figure(name, found["cached"] / found["plain"], "×", note=note)]


def _environment() -> Path:
    """The Python of the environment, which is made where it is not there yet."""
    python = FOLDER / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    done = FOLDER / f".{PACKAGE}"
    if not done.exists():
        venv.create(FOLDER, with_pip=True, clear=True)
        own = subprocess.run(
            [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            capture_output=True, text=True, check=True,
        ).stdout.strip()  # fmt: skip
        (Path(own) / "outer.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
        install = [str(python), "-m", "pip", "--disable-pip-version-check", "-qq", "install", PACKAGE]
        subprocess.run(install, capture_output=True, text=True, check=True, timeout=PATIENCE)
        done.touch()
    return python


def beside(folder: str, ids: list[int], rounds: int) -> dict[str, float]:
    """Run in the environment: median seconds of both sides in turn, after a round that is not counted."""
    import torch
    from transformer_lens.model_bridge import TransformerBridge
    from transformers import AutoModelForCausalLM, AutoTokenizer

    plain = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    hooked = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    bridge = TransformerBridge.boot_transformers(
        folder, hf_model=hooked, tokenizer=AutoTokenizer.from_pretrained(folder), device="cpu"
    )
    tokens, kept = torch.tensor([ids]), 0
    seconds: dict[str, list[float]] = {"plain": [], "cached": []}
    with torch.inference_mode():
        for number in range(rounds + 1):
            started = time.perf_counter()
            plain(tokens, use_cache=True, logits_to_keep=1)
            between = time.perf_counter()
            _, cache = bridge.run_with_cache(tokens)
            ended, kept = time.perf_counter(), len(cache)
            if number:
                seconds["plain"].append(between - started)
                seconds["cached"].append(ended - between)
    return {name: median(values) for name, values in seconds.items()} | {"kept": kept}


if __name__ == "__main__":
    print(json.dumps(beside(**json.loads(sys.argv[1]))))
