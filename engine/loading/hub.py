"""A model of the Hugging Face Hub at one commit: only the files that are needed, found again without asking the Hub.

A download goes on where it was cut or given up. A model that is whole in huggingface_hub's own cache is used there.
"""

import shutil
from fnmatch import fnmatch
from pathlib import Path

from filelock import FileLock
from huggingface_hub import HfApi, constants, try_to_load_from_cache
from huggingface_hub.hf_api import ModelInfo

from engine.catalog import HubSource, ModelError
from engine.embedded import cache_root, sha256
from engine.loading.fetching import Meter, fetch
from engine.loading.obstacles import ERRORS, obstacle
from engine.loading.progress import Report
from engine.loading.weight_files import INDEX, WEIGHTS, weight_files
from engine.said import said

#: Seconds until a Hub that does not answer is out of reach.
PATIENCE = 5.0
#: Beside the weights; nothing that runs, and no other format of the weights.
SMALL_FILES = (
    "config.json", "generation_config.json", INDEX, "tokenizer.json", "tokenizer_config.json", "tokenizer.model",
    "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt", "chat_template.jinja",
    "chat_template.json",
)  # fmt: skip
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


def hub_folder(source: HubSource, *, title: str, report: Report) -> Path:
    """The folder with the model's files, downloaded first where they are not all here.

    Two processes at once fetch them once. Raises `ModelError`, which says what is in the way and what to do.
    """
    folder = cached_folder(source)
    if folder is not None:
        return folder
    folder = own_folder(source)
    try:
        info = describe(source.repo, source.revision)
        files = wanted(info, title)
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f"{folder.name}.lock")):
            _check_disk(folder, files, title)
            meter = Meter(sum(files.values()), report)
            for name, size in files.items():
                fetch(source, name, size, folder, meter)
                meter.finish(size)
            _check_hashes(folder, info, title)
    except ERRORS as error:
        raise ModelError(
            said("cannot_load", title=title, reason=obstacle(error, source.repo, source.revision))
        ) from error
    return folder


def describe(repo: str, revision: str | None) -> ModelInfo:
    """What the Hub knows of a repository: its commit, its files and their sizes. Raises what huggingface_hub raises."""
    info = HfApi(endpoint=constants.ENDPOINT).model_info(repo, revision=revision, files_metadata=True, timeout=PATIENCE)
    if not info.sha:
        raise ModelError(said("hub_no_commit", hub=constants.ENDPOINT, repo=repo))
    return info


def wanted(info: ModelInfo, title: str) -> dict[str, int]:
    """Names and bytes of the files to fetch, small ones first. Raises `ModelError` without safetensors."""
    sizes = {sibling.rfilename: sibling.size or 0 for sibling in info.siblings or ()}
    parts = sorted(name for name in sizes if fnmatch(name, "model-*-of-*.safetensors"))
    weights = [WEIGHTS] if WEIGHTS in sizes else parts if INDEX in sizes else []
    if not weights:
        pickled = any(fnmatch(name, pattern) for name in sizes for pattern in PICKLES)
        raise ModelError(said("hub_only_pickles" if pickled else "hub_no_weights", title=title, repo=info.id))
    return {name: sizes[name] for name in [*(name for name in SMALL_FILES if name in sizes), *weights]}


def own_folder(source: HubSource) -> Path:
    """Where the files of that commit are kept, or would be."""
    return cache_root() / "hub" / f"{source.repo.replace('/', '--')}-{source.revision[:12]}"


def cached_folder(source: HubSource) -> Path | None:
    """A folder with that commit where all that is needed is there: our own, or the Hub's cache. Nothing is asked."""
    theirs = try_to_load_from_cache(
        source.repo, "config.json", cache_dir=constants.HF_HUB_CACHE, revision=source.revision
    )
    folders = [own_folder(source), *([Path(theirs).parent] if isinstance(theirs, str) else [])]
    return next((folder for folder in folders if is_whole(folder)), None)


def is_whole(folder: Path) -> bool:
    """True where config, a tokenizer and every part of the weights are there."""
    has = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if "config.json" not in has or not has & {"tokenizer.json", "vocab.json", "tokenizer.model"}:
        return False
    files = weight_files(folder)
    return bool(files) and all(path.is_file() for path in files)


def _check_disk(folder: Path, files: dict[str, int], title: str) -> None:
    here = sum(path.stat().st_size for path in folder.iterdir())
    missing, free = sum(files.values()) - here, shutil.disk_usage(folder).free
    if missing > free:
        raise ModelError(
            said("disk_too_small", title=title, missing=missing / 1e6, free=free / 1e6, folder=folder.parent)
        )


def _check_hashes(folder: Path, info: ModelInfo, title: str) -> None:
    """The weights against the SHA-256 that the Hub gives; what is not the same goes, to be fetched anew."""
    for sibling in info.siblings or ():
        path = folder / sibling.rfilename
        if sibling.lfs is not None and path.is_file() and sha256(path) != sibling.lfs.sha256:
            path.unlink()
            raise ModelError(said("came_damaged", title=title, file=path.name))
