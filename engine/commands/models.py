"""`python -m engine models`: the catalogue, the memory each model needs, and what fits here."""

import argparse
from typing import TYPE_CHECKING

from engine.catalog import Catalog, EmbeddedSource, Entry, FolderSource, HubSource
from engine.loading.memory import KINDS, needed_bytes
from engine.settings import Settings

if TYPE_CHECKING:
    import torch

GIB = 1 << 30


def add(parser: argparse.ArgumentParser, catalog: Catalog) -> None:  # noqa: ARG001 - as the other commands
    """Add the flags of the command."""
    Settings.add_flags(parser, "device")


def main(flags: argparse.Namespace, catalog: Catalog) -> int:
    """Print a line for each model; GiB, a star where that fits now."""
    # torch takes seconds to import, and only it knows the GPUs.
    from engine.loading.devices import pick_device
    from engine.loading.room import free_on

    device = pick_device(Settings.from_flags(flags).device)
    free = free_on(device)
    heads = ("id", "parameters", *(f"{kind} GiB" for kind in KINDS), "context", "tools", "licence", "weights")
    rows = [heads, *(_row(entry, free, device) for entry in catalog.models)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    print(f"\n* fits: {free / GIB:.2f} GiB are free on {device}. With --offload a model may be larger than that.")
    return 0


def _row(entry: Entry, free: int, device: "torch.device") -> tuple[str, ...]:
    needs = []
    for kind in KINDS:
        needed = needed_bytes(entry, kind)
        fits = needed <= free and (kind != "4bit" or device.type == "cuda")
        needs.append(f"{needed / GIB:.2f}{' *' if fits else ''}")
    tools = "yes" if entry.tools else "no"
    return (entry.id, f"{entry.parameters:,}", *needs, f"{entry.context:,}", tools, entry.licence, _where(entry))


def _where(entry: Entry) -> str:
    match entry.source:
        case EmbeddedSource() as source:
            return f"package {source.package} {source.version}"
        case HubSource() as source:
            from engine.loading.hub import cached_folder

            return f"Hub {source.repo} @ {source.revision[:12]}{', is here' if cached_folder(source) else ''}"
        case FolderSource() as source:
            return str(source.folder)
    return "none: only its shape is known"
