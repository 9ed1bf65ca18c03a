"""From the start of `python app.py` to its first page, over the time that importing its three libraries takes.

Both are fresh processes with warm files, in turn. The page is served before the model: it opens its conversation as
soon as the model is there.
"""

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from benchmarks.decode import in_turn
from benchmarks.figures import Figure

ROOT = Path(__file__).resolve().parents[1]
IMPORTS = "import gradio, torch, transformers"
PATIENCE = 120.0  # seconds until a start counts as failed


def imports() -> float:
    """Seconds from spawning Python to its end after the imports."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", IMPORTS], cwd=ROOT, check=True)
    return time.perf_counter() - started


def first_page() -> float:
    """Seconds from spawning the app to the first complete answer for `/`. Raises RuntimeError where it ends instead."""
    port = _free_port()
    started = time.perf_counter()
    app = subprocess.Popen(
        [sys.executable, "app.py", "--port", str(port)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        while not _answers(port):
            if app.poll() is not None or time.perf_counter() - started > PATIENCE:
                app.kill()
                raise RuntimeError(f"the app gave no page: {app.communicate()[1].decode()[-2000:]}")
            time.sleep(0.02)
        return time.perf_counter() - started
    finally:
        app.terminate()
        app.communicate()


def measure(*, rounds: int = 3) -> list[Figure]:
    """The second start: a round that is not counted comes first, and makes the converted model where there is none."""
    seconds = in_turn(rounds, app=first_page, imports=imports)
    note = f"{seconds['app']:.1f} s / {seconds['imports']:.1f} s"
    return [Figure("second start / imports", seconds["app"] / seconds["imports"], "×", 1.3, note=note)]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=PATIENCE) as page:
            return page.status == 200 and bool(page.read())
    except (urllib.error.URLError, ConnectionError):
        return False
