"""What is free: the system's word, and the limits of control groups of both versions."""

from pathlib import Path

import psutil
import pytest
import torch

from engine.loading import room
from engine.loading.room import container_room, free_on, free_ram

MIB = 1 << 20


def group(folder: Path, names: tuple[str, str], limit: str, used: int, reclaimable: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 7\ninactive_file {reclaimable}\n")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tmp_path / "own"


def test_the_tightest_group_above_counts(tmp_path: Path, own: Path) -> None:
    own.write_text("0::/pod/box\n")
    group(tmp_path / "root" / "pod" / "box", room.FILES[0], "max", 0)
    group(tmp_path / "root" / "pod", room.FILES[0], str(100 * MIB), 70 * MIB, reclaimable=10 * MIB)
    group(tmp_path / "root", room.FILES[0], str(900 * MIB), 100 * MIB)
    assert container_room(tmp_path / "root", own) == 40 * MIB


def test_a_container_that_sees_only_its_own_root(tmp_path: Path, own: Path) -> None:
    own.write_text("0::/../host/path\n")
    group(tmp_path / "root", room.FILES[0], str(64 * MIB), 60 * MIB)
    own.write_text("0::/docker/f00\n")
    assert container_room(tmp_path / "root", own) == 4 * MIB


def test_version_one(tmp_path: Path, own: Path) -> None:
    own.write_text("9:name=systemd:/\n4:cpu,memory:/box\n")
    group(tmp_path / "root" / "memory" / "box", room.FILES[1], str(50 * MIB), 20 * MIB)
    group(tmp_path / "root" / "memory", room.FILES[1], "9223372036854771712", 20 * MIB)  # "no limit" there
    assert container_room(tmp_path / "root", own) == 30 * MIB


def test_no_group_no_limit(tmp_path: Path, own: Path) -> None:
    assert container_room(tmp_path, own) is None
    own.write_text("0::/\n")
    assert container_room(tmp_path, own) is None


def test_free_memory_is_the_less_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < free_ram() <= psutil.virtual_memory().total
    monkeypatch.setattr(room, "container_room", lambda root, own: 3 * MIB)
    assert free_ram() == free_on(torch.device("cpu")) == 3 * MIB
    monkeypatch.setattr(room, "container_room", lambda root, own: 1 << 60)
    assert free_ram() < 1 << 60


def test_a_gpu_is_asked_for_its_own_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: asked.append(device) or (5 * MIB, 9 * MIB))
    assert free_on(torch.device("cuda:1")) == 5 * MIB
    assert asked == [torch.device("cuda:1")]
