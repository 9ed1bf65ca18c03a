"""Whether a model fits, before anything is fetched or loaded: what it needs against what is really free."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import torch

from engine.catalog import ModelError, NoRoomError
from engine.loading.memory import KINDS, Sizes, needed_bytes
from engine.loading.room import free_on
from engine.said import said

GIB = 1 << 30


def check_fits(title: str, model: Sizes, kind: str, device: torch.device) -> None:
    """Raise `NoRoomError` with both numbers, and what may help, where the device has less free than is needed."""
    needed, free = needed_bytes(model, kind), free_on(device)
    if needed <= free:
        return
    smaller = [other for other in KINDS if needed_bytes(model, other) <= free]
    ways = [f"--quantize {other}" if other == "4bit" else f"--dtype {other}" for other in smaller]
    if "4bit" in smaller and device.type != "cuda":
        ways.pop()
    key = "no_room_in_memory" if device.type == "cpu" else "no_room_on_device"
    advice = ", ".join([*ways, "--offload"])
    raise NoRoomError(
        said(key, title=title, needed=needed / GIB, kind=kind, free=free / GIB, device=device, advice=advice),
        missing=needed - free,
    )


def check_spread(title: str, model: Sizes, kind: str, room: Mapping[int | str, int], folder: Path) -> None:
    """The same for a model that is spread over devices, memory and a folder on the disk."""
    needed, free = needed_bytes(model, kind), sum(room.values())
    place = next(parent for parent in (folder, *folder.absolute().parents) if parent.is_dir())
    disk = shutil.disk_usage(place).free
    if needed > free + disk:
        raise ModelError(
            said(
                "no_room_spread",
                title=title,
                needed=needed / GIB,
                kind=kind,
                free=free / GIB,
                disk=disk / GIB,
                place=place,
            )
        )
