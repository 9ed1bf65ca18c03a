"""A model of the Hugging Face Hub at one commit: only the files that are needed, found again without asking the Hub.

huggingface_hub goes on where a connection was cut. Of a download that was given up, files that were whole are kept.
"""

import json
import shutil
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, constants, hf_hub_download, try_to_load_from_cache
from huggingface_hub.hf_api import ModelInfo
from tqdm import tqdm

from engine.catalog import HubSource, ModelError
from engine.loading.obstacles import ERRORS, obstacle
from engine.loading.progress import Progress, Report

#: Seconds until a Hub that does not answer is out of reach.
PATIENCE = 5.0
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
#: Beside the weights; nothing that runs, and no other format of the weights.
SMALL_FILES = (
    "config.json", "generation_config.json", INDEX, "tokenizer.json", "tokenizer_config.json", "tokenizer.model",
    "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt", "chat_template.jinja",
    "chat_template.json",
)  # fmt: skip
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


def hub_folder(source: HubSource, *, title: str, report: Report) -> Path:
    """The folder with the model's files, downloaded first where they are not all here.

    Raises `ModelError`, which says what is in the way and what to do.
    """
    folder = cached_folder(source)
    if folder is not None:
        return folder
    try:
        files = wanted(describe(source.repo, source.revision), title)
        _check_disk(source, files, title)
        meter = _Meter(sum(files.values()), report)
        for name, size in files.items():
            path = hf_hub_download(
                source.repo,
                name,
                revision=source.revision,
                endpoint=constants.ENDPOINT,
                cache_dir=constants.HF_HUB_CACHE,
                etag_timeout=PATIENCE,
                tqdm_class=meter.bar(),
            )
            meter.finish(size)
    except ERRORS as error:
        raise ModelError(f"{title} cannot be loaded: {obstacle(error, source.repo, source.revision)}") from error
    return Path(path).parent


def describe(repo: str, revision: str | None) -> ModelInfo:
    """What the Hub knows of a repository: its commit, its files and their sizes. Raises what huggingface_hub raises."""
    info = HfApi(endpoint=constants.ENDPOINT).model_info(repo, revision=revision, files_metadata=True, timeout=PATIENCE)
    if not info.sha:
        raise ModelError(f"{constants.ENDPOINT} does not say at which commit {repo} is")
    return info


def wanted(info: ModelInfo, title: str) -> dict[str, int]:
    """Names and bytes of the files to fetch, small ones first. Raises `ModelError` without safetensors."""
    sizes = {sibling.rfilename: sibling.size or 0 for sibling in info.siblings or ()}
    parts = sorted(name for name in sizes if fnmatch(name, "model-*-of-*.safetensors"))
    weights = [WEIGHTS] if WEIGHTS in sizes else parts if INDEX in sizes else []
    if not weights:
        pickled = any(fnmatch(name, pattern) for name in sizes for pattern in PICKLES)
        has = "its weights are pickled, and loading those may run code" if pickled else "there are no weights"
        raise ModelError(f"{title} is refused: only safetensors are loaded from {info.id}, and {has}")
    return {name: sizes[name] for name in [*(name for name in SMALL_FILES if name in sizes), *weights]}


def cached_folder(source: HubSource) -> Path | None:
    """The folder of that commit in the Hub's cache, where all that is needed is there; the Hub is not asked."""
    config = _cached(source, "config.json")
    if config is None or not any(_cached(source, name) for name in ("tokenizer.json", "vocab.json", "tokenizer.model")):
        return None
    index = _cached(source, INDEX)
    if index is None:
        return config.parent if _cached(source, WEIGHTS) else None
    try:
        parts = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (OSError, ValueError, LookupError, AttributeError):
        return None
    return config.parent if parts and all(_cached(source, str(part)) for part in parts) else None


def _cached(source: HubSource, name: str) -> Path | None:
    found = try_to_load_from_cache(source.repo, name, cache_dir=constants.HF_HUB_CACHE, revision=source.revision)
    return Path(found) if isinstance(found, str) else None


def _check_disk(source: HubSource, files: dict[str, int], title: str) -> None:
    cache = Path(constants.HF_HUB_CACHE)
    place = next(folder for folder in (cache, *cache.absolute().parents) if folder.is_dir())
    missing = sum(size for name, size in files.items() if _cached(source, name) is None)
    free = shutil.disk_usage(place).free
    if missing > free:
        raise ModelError(
            f"{title} cannot be loaded: {missing / 1e6:,.1f} MB are to be downloaded and {free / 1e6:,.1f} MB are free "
            f"in {cache}; free some of the disk, or set HF_HOME to another folder"
        )


class _Meter:
    """Adds up the bytes of all files; a file that was here already counts when it is passed."""

    def __init__(self, total: int, report: Report) -> None:
        self._total, self._report = total, report
        self._before = 0  # of the files that are whole
        self._now = 0
        self._tell()

    def add(self, count: int) -> None:
        self._now += count
        self._tell()

    def finish(self, size: int) -> None:
        self._before, self._now = self._before + size, 0
        self._tell()

    def _tell(self) -> None:
        self._report(Progress("downloading", min(self._before + self._now, self._total), self._total))

    def bar(self) -> type[tqdm]:
        """A bar that shows nothing and counts for this meter; huggingface_hub makes one for each file."""
        meter = self

        class Bar(tqdm):
            def __init__(self, *arguments: Any, **options: Any) -> None:
                # Its faster transfer has a second bar, of the bytes on the wire.
                self._counts = "downloading bytes" not in str(options.get("desc", "")).lower()
                super().__init__(*arguments, **options | {"disable": True})
                if self._counts:
                    meter.add(int(options.get("initial") or 0))

            def update(self, n: float | None = 1) -> bool | None:
                if self._counts:
                    meter.add(int(n or 0))
                return None

        return Bar
