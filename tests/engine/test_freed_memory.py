"""Freed tensors leave the process: a fresh one makes holes as caches do, and gives them back."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine import freed_memory
from engine.model import LoadedModel
from engine.stages import forward as stage
from engine.stages.inputs import make_inputs

SCRIPT = """
import time
import torch
from engine.freed_memory import give_back, giving_back

def resident():
    line = next(line for line in open("/proc/self/status") if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024

torch.zeros(16 << 20, dtype=torch.uint8)  # freed at once: from now on blocks of this size stay in the heap
before = resident()
held = [torch.ones(2 << 20, dtype=torch.uint8) for _ in range(64)]
pins = held[::8]  # what stays keeps the heap from shrinking by itself
del held
holes = resident() - before
WAY
print(holes, resident() - before, len(pins))
"""

WAYS = {"at once": "assert give_back()", "meanwhile": "with giving_back(0.01): time.sleep(1)"}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells a process its resident size")
@pytest.mark.parametrize("way", WAYS)
def test_holes_between_what_stays_go_back_to_the_system(way: str) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("WAY", WAYS[way])], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    holes, left, pins = map(int, done.stdout.split())
    assert holes > 100 << 20, "nothing to give back: the test does not make holes any more"
    assert left < (pins * 2 + 8) << 20


def test_only_a_long_prompt_gives_memory_back_meanwhile(
    architecture: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []

    @contextmanager
    def noting() -> Iterator[None]:
        begun.append(1)
        yield

    monkeypatch.setattr(freed_memory, "giving_back", noting)
    monkeypatch.setattr(stage, "LONG", 8)
    for count in (7, 8, 9):
        stage.forward(architecture.model, make_inputs([1] * count, past=0, device=architecture.device), None)
    assert len(begun) == 2


def test_it_ends_with_what_it_was_for_also_where_that_fails() -> None:
    def fail() -> None:
        with freed_memory.giving_back(0.01):
            assert "freed-memory" in _threads()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert "freed-memory" not in _threads()


def _threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}
