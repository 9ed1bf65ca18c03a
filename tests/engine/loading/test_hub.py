"""Models of the Hub, against a Hub of this machine: what is fetched, gone on with, found again, and refused."""

import errno
import shutil
import time
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import constants

from engine.catalog import Entry, HubSource, ModelError
from engine.loading import hub as hub_module
from engine.loading.added import added
from engine.loading.hub import hub_folder
from engine.loading.obstacles import obstacle
from engine.loading.progress import Progress, unheard
from engine.model import load
from tests.engine.loading.conftest import REPO, point_at
from tests.engine.loading.fake_hub import COMMIT, Hub, Repo
from tests.engine.models import tiny

SOURCE = HubSource(kind="hub", repo=REPO, revision=COMMIT)


def fetch(source: HubSource = SOURCE, report: Any = unheard) -> Path:
    return hub_folder(source, title="Tiny", report=report)


def test_a_model_comes_at_its_commit_and_computes_what_it_computed(hub: Hub, hub_entry: Entry) -> None:
    loaded = load(hub_entry, device="cpu")
    ids = torch.tensor([[1, 5, 9]])
    assert torch.equal(loaded.model(ids).logits, tiny("llama").model(ids).logits)
    assert loaded.facts.parameters == hub_entry.parameters == tiny("llama").facts.parameters
    assert hub.got("model.safetensors") == [""]
    assert all(f"/{COMMIT}" in path for _, path, _ in hub.asked)


def test_only_what_is_needed_is_fetched(hub: Hub, saved: Path, tmp_path: Path) -> None:
    folder = tmp_path / "crowded"
    shutil.copytree(saved, folder)
    for name in ("pytorch_model.bin", "modeling_tiny.py", "README.md", "model.onnx", "other.safetensors"):
        (folder / name).write_bytes(b"x")
    hub.repos[REPO] = Repo(folder)
    fetched = {path.name for path in fetch().iterdir()}
    assert fetched == {path.name for path in saved.iterdir()}
    assert fetched >= {"model.safetensors", "config.json", "tokenizer.json"}


def test_progress_counts_the_bytes_to_their_total(hub: Hub, saved: Path) -> None:
    heard: list[Progress] = []
    fetch(report=heard.append)
    total = sum(path.stat().st_size for path in saved.iterdir())
    assert {progress.total for progress in heard} == {total}
    done = [progress.done for progress in heard]
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, total)
    assert len(set(done)) > len(list(saved.iterdir())) - 1


def test_what_is_here_is_found_without_asking(hub: Hub) -> None:
    folder = fetch()
    hub.asked.clear()
    assert fetch() == folder
    assert hub.asked == []


def test_a_cut_download_goes_on_where_it_was_cut(hub: Hub, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 16_384)  # what is not a whole chunk is fetched again
    weights = saved / "model.safetensors"
    hub.repos[REPO].cuts["model.safetensors"] = [60_000]
    folder = fetch()
    assert (folder / "model.safetensors").read_bytes() == weights.read_bytes()
    first, second = hub.got("model.safetensors")
    assert first == ""
    assert 0 < int(second.removeprefix("bytes=").partition("-")[0]) <= 60_000


def test_a_download_that_was_given_up_is_gone_on_with_the_next_time(
    hub: Hub, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 16_384)
    heard: list[Progress] = []

    def stop(progress: Progress) -> None:
        if progress.done > progress.total - 90_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(report=stop)
    assert hub_module.cached_folder(SOURCE) is None
    hub.asked.clear()
    folder = fetch(report=heard.append)
    assert (folder / "model.safetensors").read_bytes() == (saved / "model.safetensors").read_bytes()
    assert {path.rpartition("/")[2] for method, path, _ in hub.asked if "/resolve/" in path} == {"model.safetensors"}
    (second,) = hub.got("model.safetensors")
    assert int(second.removeprefix("bytes=").partition("-")[0]) >= 16_384
    assert heard[-1].done == heard[-1].total
    assert [progress.done for progress in heard] == sorted(progress.done for progress in heard)


def test_what_came_damaged_is_told_and_fetched_anew(hub: Hub, saved: Path) -> None:
    folder = hub_module.own_folder(SOURCE)
    folder.mkdir(parents=True)
    weights = bytearray((saved / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (folder / "model.safetensors.partial").write_bytes(weights)
    with pytest.raises(ModelError, match="model.safetensors came damaged and was put away"):
        fetch()
    assert (fetch() / "model.safetensors").read_bytes() == (saved / "model.safetensors").read_bytes()


def test_too_long_a_rest_begins_anew(hub: Hub, saved: Path) -> None:
    folder = hub_module.own_folder(SOURCE)
    folder.mkdir(parents=True)
    (folder / "config.json.partial").write_bytes(b"x" * 100_000)
    assert (fetch() / "config.json").read_bytes() == (saved / "config.json").read_bytes()


def test_a_model_in_the_hub_s_own_cache_is_used_there(hub: Hub, saved: Path) -> None:
    theirs = Path(constants.HF_HUB_CACHE) / "models--tests--tiny-llama" / "snapshots" / COMMIT
    shutil.copytree(saved, theirs)
    assert fetch() == theirs
    assert hub.asked == []


def test_a_model_in_parts_is_whole_only_with_every_part(hub: Hub, sharded: Path) -> None:
    hub.repos[REPO] = Repo(sharded)
    folder = fetch()
    parts = sorted(folder.glob("model-*-of-*.safetensors"))
    assert len(parts) > 1
    assert hub_module.cached_folder(SOURCE) == folder
    parts[0].unlink()
    assert hub_module.cached_folder(SOURCE) is None
    assert fetch() == folder
    assert parts[0].exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"description": (404, "RepoNotFound")}, "there is no tests/tiny-llama on"),
        ({"description": (401, "")}, "it is private or gated; set HF_TOKEN"),
        ({"files": (403, "GatedRepo")}, "is gated: accept its terms at .*tests/tiny-llama, then set HF_TOKEN"),
        ({"commit": "d" * 40}, f"has no revision {COMMIT}"),
        ({"description": (503, "")}, "answered 503"),
    ],
)
def test_a_refusal_of_the_hub_says_what_to_do(hub: Hub, saved: Path, changes: dict[str, Any], said: str) -> None:
    hub.repos[REPO] = Repo(saved, **changes)
    begun = time.monotonic()
    with pytest.raises(ModelError, match=said) as refused:
        fetch()
    assert "\n" not in str(refused.value)
    assert time.monotonic() - begun < 5


def test_pickled_weights_are_refused_before_anything_is_fetched(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "pickled").mkdir()
    for name in ("config.json", "pytorch_model.bin"):
        (tmp_path / "pickled" / name).write_bytes(b"{}")
    hub.repos[REPO] = Repo(tmp_path / "pickled")
    with pytest.raises(ModelError, match="only safetensors are loaded .* pickled, and loading those may run code"):
        fetch()
    assert [path for _, path, _ in hub.asked if "/resolve/" in path] == []


def test_a_hub_out_of_reach_is_told_within_seconds(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    point_at("http://127.0.0.1:9", monkeypatch)
    begun = time.monotonic()
    with pytest.raises(ModelError, match="http://127.0.0.1:9 cannot be reached .*; check the connection"):
        fetch()
    assert time.monotonic() - begun < 5


def test_a_name_that_is_not_known_is_told(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    point_at("http://no-such-host.invalid", monkeypatch)
    with pytest.raises(ModelError, match="no-such-host.invalid cannot be reached"):
        fetch()


def test_the_offline_switch_is_named(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match="HF_HUB_OFFLINE is set and tests/tiny-llama is neither in"):
        fetch()


def test_a_disk_without_room_is_told_with_both_numbers(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(hub_module.shutil, "disk_usage", lambda place: usage(10**9, 10**9, 100_000))
    with pytest.raises(ModelError, match=r"0\.2 MB are to be downloaded and 0\.1 MB are free"):
        fetch()
    assert [path for _, path, _ in hub.asked if "/resolve/" in path] == []


@pytest.mark.parametrize(
    ("number", "said"), [(errno.ENOSPC, "the disk is full"), (errno.EACCES, "cannot be written; set DECODESCOPE_CACHE")]
)
def test_trouble_of_the_disk_names_the_way_out(number: int, said: str) -> None:
    assert said in obstacle(OSError(number, "x"), REPO, COMMIT)


def test_an_id_is_resolved_to_its_commit_and_its_facts(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    entry = added(f"small={REPO}@main")
    assert entry.source == SOURCE
    assert f"{REPO} at commit {COMMIT}" in capsys.readouterr().err
    facts = tiny("llama").facts
    assert (entry.id, entry.licence, entry.tools) == ("small", "apache-2.0", False)
    for name in ("layers", "heads", "kv_heads", "head_dim", "hidden_size", "ffn_size", "vocab_rows", "context"):
        assert getattr(entry, name) == getattr(facts, name), name
    assert (entry.parameters, entry.tied_embeddings) == (facts.parameters, facts.tied_embeddings)
    assert hub.got("model.safetensors") == ["bytes=0-100000"]


def test_a_commit_that_is_here_needs_no_hub(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fetch()
    point_at("http://127.0.0.1:9", monkeypatch)
    entry = added(f"{REPO}@{COMMIT}")
    assert entry.source == SOURCE
    assert entry.weight_bytes == (folder / "model.safetensors").stat().st_size
    with pytest.raises(ModelError, match="cannot be reached"):
        added(f"{REPO}@{'d' * 40}")


def test_an_id_whose_model_is_here_needs_no_hub(hub: Hub, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = added(f"{REPO}@main")
    theirs = Path(constants.HF_HUB_CACHE) / "models--tests--tiny-llama"
    shutil.copytree(saved, theirs / "snapshots" / COMMIT, dirs_exist_ok=True)
    (theirs / "refs").mkdir(exist_ok=True)
    (theirs / "refs" / "main").write_text(COMMIT)
    point_at("http://127.0.0.1:9", monkeypatch)
    again = added(f"{REPO}@main")
    assert again.source == SOURCE
    assert again.parameters == entry.parameters
    assert added(f"{REPO}@{COMMIT}").source == SOURCE


@pytest.mark.parametrize("spec", [f"{REPO}@no-such", "tests/nobody"])
def test_an_id_that_is_not_there_is_refused(hub: Hub, spec: str) -> None:
    with pytest.raises(ModelError, match=r"cannot be added: (there is no|.* has no revision no-such)"):
        added(spec)
