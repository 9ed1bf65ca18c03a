"""The memory that is really free here: of the machine, within the limits of a container, and of the accelerators."""

from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    import torch

CGROUPS, OWN_CGROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
#: Names of limit, use and statistics: of version 2, and of version 1 under its folder `memory`.
FILES = ("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")
RECLAIMABLE = ("inactive_file", "total_inactive_file")


def free_ram() -> int:
    """Bytes that a process can still take: what the system says, or what its container leaves where that is less."""
    free = int(psutil.virtual_memory().available)
    limits = container_room(CGROUPS, OWN_CGROUP)
    return free if limits is None else min(free, limits)


def container_room(root: Path, own: Path) -> int | None:
    """Bytes left under the memory limits of this process's control groups; None where none has a limit.

    Files that were read and could be dropped again do not count as used.
    """
    rooms = []
    for folder, (limit, used) in _groups(root, own):
        most, now = _number(folder / limit), _number(folder / used)
        if most is not None and now is not None and most < psutil.virtual_memory().total:
            rooms.append(max(0, most - now + _reclaimable(folder / "memory.stat")))
    return min(rooms, default=None)


def _groups(root: Path, own: Path) -> list[tuple[Path, tuple[str, str]]]:
    """The process's group and all above it, with the names that limit and use have there."""
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number != "0" and "memory" not in controllers.split(","):
            continue
        base, names = (root, FILES[0]) if number == "0" else (root / "memory", FILES[1])
        group = base / path.strip("/")
        # Inside a container the path may be the host's: then only the root is there.
        found += [(folder, names) for folder in (group, *group.parents) if folder.is_relative_to(base)]
    return found


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # no such file, or "max"
        return None


def _reclaimable(path: Path) -> int:
    try:
        pairs = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return 0
    return max((int(pair[1]) for pair in pairs if pair[:1] and pair[0] in RECLAIMABLE), default=0)


def free_on(device: "torch.device") -> int:
    """Bytes free where a model on this device keeps its weights."""
    import torch

    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if device.type == "mps":
        return max(0, torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
    return free_ram()
