"""Peak memory of opening every panel at a long context, above the KV cache: the process's own high-water mark.

A process of its own loads the model, makes one token after a prompt of the given length, and then opens each panel and
presses each of its buttons as the page does, without a browser. The mark is what Linux keeps for the process; it is
set back to the resident size just before, so that the prefill's own peak does not count. Between two presses passes the
second that a person takes, in which the worker gives freed memory back.
"""

import ctypes
import gc
import json
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path

from benchmarks.figures import Figure

ROOT = Path(__file__).resolve().parents[1]
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def measure(*, context: int = 2_048) -> list[Figure]:
    """Megabytes above what the process held with its conversation at hand. Raises RuntimeError where it fails."""
    if not CLEAR.exists():
        print("panels' memory left out: only Linux keeps a high-water mark that can be set back", file=sys.stderr)
        return []
    command = [sys.executable, "-m", "benchmarks.panels_memory", str(context)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the panels could not be opened: {done.stderr[-2000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    most = max(found["peaks"], key=found["peaks"].get)
    note = f"most in {most}; cache {found['cache'] / 1e6:.0f} MB; {len(found['peaks'])} panels and buttons"
    peak = max(found["peaks"].values()) / 1e6
    return [Figure(f"peak memory of all panels, {context:,} tokens", peak, "MB", 400, note=note)]


def opened(context: int) -> dict[str, object]:
    """Bytes above the resting size by panel and button, each with what the ones before it left behind."""
    from benchmarks.model import embedded
    from benchmarks.prompts import experiment_of, prompt_of
    from components.desk import Desk
    from components.page import Page
    from engine.catalog import load_catalog
    from engine.runtime import Runtime
    from engine.settings import Settings

    loaded = embedded()
    experiment = experiment_of(loaded.facts.model_id, prompt_of(loaded.tokenizer, context), 2)
    future: Future[Runtime] = Future()
    runtime = Runtime(loaded, load_catalog(), Settings(device="cpu", dtype="float32"))
    future.set_result(runtime)
    desk = Desk(future, experiment)
    page = Page(desk, experiment, loaded.facts.title, runs=Settings.max_runs)
    visit = desk.open("")
    for _ in range(2):
        runtime.step(visit.session_id)
    page.frame(visit)
    rest, peaks = _settle(), {}
    for station, panel in page.owner.items():
        _a_second_passes()
        visit.station = station
        page.frame(visit)
        peaks[station] = _peak() - rest
        for probe in panel.CONTROLS.asks:
            _a_second_passes()
            desk.ask(visit, probe)
            page.frame(visit)
            peaks[f"{station}: {probe}"] = _peak() - rest
    session = runtime._sessions.get(visit.session_id)
    cache = session.cache_bytes
    runtime.shut_down()
    return {"peaks": peaks, "cache": cache}


def _a_second_passes() -> None:
    time.sleep(1.2)
    CLEAR.write_text("5")


def _settle() -> int:
    """Give freed memory back to the system, set the mark back, and return the resident bytes."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    CLEAR.write_text("5")
    return _read("VmRSS")


def _peak() -> int:
    return _read("VmHWM")


def _read(name: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    print(json.dumps(opened(int(sys.argv[1]))))
