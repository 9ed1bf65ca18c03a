"""Freed tensors leave the process: a fresh one makes holes as caches do, and gives them back."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import torch
from engine.freed_memory import give_back

def resident():
    line = next(line for line in open("/proc/self/status") if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024

torch.zeros(16 << 20, dtype=torch.uint8)  # freed at once: from now on blocks of this size stay in the heap
before = resident()
held = [torch.ones(2 << 20, dtype=torch.uint8) for _ in range(64)]
pins = held[::8]  # what stays keeps the heap from shrinking by itself
del held
holes = resident() - before
assert give_back()
print(holes, resident() - before, len(pins))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells a process its resident size")
def test_holes_between_what_stays_go_back_to_the_system() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    holes, left, pins = map(int, done.stdout.split())
    assert holes > 100 << 20, "nothing to give back: the test does not make holes any more"
    assert left < (pins * 2 + 8) << 20
