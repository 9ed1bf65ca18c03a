"""What is known of a model of the Hub before its weights are here: its commit, its config, its tensors' shapes."""

import re
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, constants, hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import NotASafetensorsRepoError, SafetensorsParsingError
from huggingface_hub.hf_api import ModelInfo

from engine.catalog import HubSource, ModelError
from engine.loading.config_files import read_json, takes_tools
from engine.loading.hub import PATIENCE, cached_folder, describe, wanted
from engine.loading.obstacles import ERRORS, obstacle
from engine.loading.shape import Tensors

COMMIT = re.compile(r"[0-9a-f]{40}")
TEMPLATES = ("chat_template.jinja", "tokenizer_config.json")


def resolved(repo: str, revision: str | None, title: str) -> tuple[HubSource, Path | dict[str, Any]]:
    """The repository at its commit, and the entry's facts, or the folder where they can be read.

    Raises `ModelError`.
    """
    asked = revision or "main"
    try:
        info = describe(repo, revision)
        source = HubSource(kind="hub", repo=repo, revision=str(info.sha))
        files = wanted(info, title)
        return source, cached_folder(source) or _facts(source, info, files, title)
    except (NotASafetensorsRepoError, SafetensorsParsingError) as error:
        raise ModelError(f"{title} cannot be added: its weights cannot be read: {error}") from error
    except ERRORS as error:
        here = _in_cache(repo, asked)
        if here is not None:
            return here
        raise ModelError(f"{title} cannot be added: {obstacle(error, repo, asked)}") from error


def _facts(source: HubSource, info: ModelInfo, files: dict[str, int], title: str) -> dict[str, Any]:
    config = _fetch(source, "config.json")
    for name in TEMPLATES:
        if name in files:
            _fetch(source, name)
    licences = [tag.partition(":")[2] for tag in info.tags or () if tag.startswith("license:")]
    return {
        "config": read_json(config, title),
        "tensors": _tensors(source),
        "weight_bytes": sum(size for name, size in files.items() if name.endswith(".safetensors")),
        "licence": licences[0] if licences else "not stated",
        "tools": takes_tools(config.parent),
    }


def _tensors(source: HubSource) -> Tensors:
    """Names and shapes, of the first bytes of each file."""
    api = HfApi(endpoint=constants.ENDPOINT)
    found = api.get_safetensors_metadata(source.repo, revision=source.revision, timeout=PATIENCE)
    return {name: tuple(item.shape) for file in found.files_metadata.values() for name, item in file.tensors.items()}


def _fetch(source: HubSource, name: str) -> Path:
    return Path(
        hf_hub_download(
            source.repo,
            name,
            revision=source.revision,
            endpoint=constants.ENDPOINT,
            cache_dir=constants.HF_HUB_CACHE,
            etag_timeout=PATIENCE,
        )
    )


def _in_cache(repo: str, revision: str) -> tuple[HubSource, Path] | None:
    """The commit of that name, where the model is whole on this machine."""
    if COMMIT.fullmatch(revision):
        pinned = HubSource(kind="hub", repo=repo, revision=revision)
        folder = cached_folder(pinned)
        return (pinned, folder) if folder else None
    config = try_to_load_from_cache(repo, "config.json", cache_dir=constants.HF_HUB_CACHE, revision=revision)
    if not isinstance(config, str):
        return None
    source = HubSource(kind="hub", repo=repo, revision=Path(config).parent.name)
    folder = cached_folder(source)
    return (source, folder) if folder else None
