"""A model spread over GPUs, memory and disk: accelerate moves each part to the device when it is used."""

import torch

from engine.loading.memory import OVERHEAD
from engine.loading.room import free_on, free_ram


def limits(device: torch.device) -> dict[int | str, int]:
    """Bytes of weights that each place may take, as accelerate's `max_memory`; what is left over goes to the disk.

    The overhead stays free everywhere. On a Mac, GPU and memory are one.
    """
    room: dict[int | str, int] = {"cpu": max(0, free_ram() - OVERHEAD)}
    if device.type == "cuda":
        own = range(torch.cuda.device_count()) if device.index is None else (device.index,)
        room |= {gpu: max(0, free_on(torch.device("cuda", gpu)) - OVERHEAD) for gpu in own}
    return room


def places(device_map: dict[str, int | str | torch.device]) -> str:
    """What a loaded model's parts are on, told as its device: "cuda:0 + cpu + disk"."""
    found = {f"cuda:{place}" if isinstance(place, int) else str(place) for place in device_map.values()}
    return " + ".join(sorted(found, key=lambda place: (("cuda", "cpu", "disk").index(place.partition(":")[0]), place)))
