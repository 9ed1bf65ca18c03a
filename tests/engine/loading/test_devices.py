"""Device, dtype, 4 bits, offload and whether it fits: what is asked of the libraries, and what is refused."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from engine import model as loading
from engine.catalog import ModelError, NoRoomError, load_catalog
from engine.conversation import Conversation
from engine.loading import devices, fits, offload, quantized
from engine.loading.added import added
from engine.loading.devices import pick_device, pick_dtype
from engine.loading.fits import check_fits, check_spread
from engine.loading.memory import OVERHEAD, needed_bytes
from engine.loading.quantized import four_bits
from engine.model import load
from engine.probes.table import PROBES
from engine.refusals import Refused
from tests.engine.conversations import experiment, finish

GIB = 1 << 30
SEVEN = load_catalog().find("qwen2.5-7b-instruct")
CPU, CUDA = torch.device("cpu"), torch.device("cuda:0")


def test_auto_takes_the_best_device_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    usable = {"cpu"}
    monkeypatch.setattr(devices, "_usable", lambda kind: kind in usable)
    assert pick_device("auto") == torch.device("cpu")
    usable.add("mps")
    assert pick_device("auto") == torch.device("mps")
    usable.add("cuda")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert pick_device("auto") == torch.device("cuda")
    assert pick_device("cuda:1") == torch.device("cuda:1")
    assert pick_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "mps", "tpu", "", "meta", "cpu; rm"])
def test_a_device_that_cannot_be_used_names_those_that_can(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_usable", lambda kind: kind == "cpu")
    with pytest.raises(ModelError, match="cannot be used here; there is: auto, cpu"):
        pick_device(name)


@pytest.mark.parametrize("name", ["cuda:1", "cuda:7", "cpu:1"])
def test_a_device_past_the_last_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_usable", lambda kind: kind in {"cuda", "cpu"})
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ModelError, match=f"device '{name}' cannot be used here; there is: auto, cuda, cpu"):
        pick_device(name)
    assert pick_device("cuda:0") == torch.device("cuda:0")


def test_auto_dtype_is_float32_on_the_cpu_only() -> None:
    assert pick_dtype("auto", torch.device("cpu")) == torch.float32
    assert pick_dtype("auto", torch.device("cuda")) == torch.bfloat16
    assert pick_dtype("float16", torch.device("cpu")) == torch.float16


@pytest.mark.parametrize("name", ["int8", "float64", "", "__class__"])
def test_an_unknown_dtype_names_those_allowed(name: str) -> None:
    with pytest.raises(ModelError, match="allowed: auto, float32, bfloat16, float16"):
        pick_dtype(name, torch.device("cpu"))


def test_four_bits_without_package_or_gpu_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantized.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match="bitsandbytes is not installed and the device is cpu; leave --quantize out"):
        four_bits(CPU, torch.float32)
    with pytest.raises(ModelError, match=r"NVIDIA GPU: the package bitsandbytes is not installed;"):
        four_bits(CUDA, torch.bfloat16)


def test_four_bits_ask_for_what_the_memory_is_counted_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantized.importlib.util, "find_spec", lambda name: SimpleNamespace())
    with pytest.raises(ModelError, match="NVIDIA GPU: the device is mps;"):
        four_bits(torch.device("mps"), torch.float16)
    config = four_bits(CUDA, torch.bfloat16)
    assert (config.load_in_4bit, config.bnb_4bit_quant_type, config.bnb_4bit_use_double_quant) == (True, "nf4", True)
    assert config.bnb_4bit_compute_dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("free", "kind", "device", "said"),
    [
        (16, "float32", CPU, r"needs 28\.87 GiB in float32 and 16\.00 GiB of memory are free; try --dtype bfloat16,"),
        (
            8,
            "float32",
            CPU,
            r"needs 28\.87 GiB in float32 and 8\.00 GiB of memory are free; try --offload, or a smaller model",
        ),
        (8, "bfloat16", CUDA, r"needs 14\.69 GiB in bfloat16 and 8\.00 GiB on cuda:0 are free; try --quantize 4bit,"),
    ],
)
def test_what_does_not_fit_is_refused_with_both_numbers_and_ways(
    free: int, kind: str, device: torch.device, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fits, "free_on", lambda place: free * GIB)
    with pytest.raises(NoRoomError, match=f"Seven {said}"):
        check_fits("Seven", SEVEN, kind, device)


def test_what_just_fits_is_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = needed_bytes(SEVEN, "bfloat16")
    monkeypatch.setattr(fits, "free_on", lambda place: needed)
    check_fits("Seven", SEVEN, "bfloat16", CPU)
    monkeypatch.setattr(fits, "free_on", lambda place: needed - 1)
    with pytest.raises(NoRoomError) as told:
        check_fits("Seven", SEVEN, "bfloat16", CPU)
    assert told.value.missing == 1


def test_it_is_refused_before_anything_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fits, "free_on", lambda place: 0)
    monkeypatch.setattr(loading, "hub_folder", lambda *_, **__: pytest.fail("it was fetched"))
    monkeypatch.setattr(loading, "embedded_folder", lambda *_, **__: pytest.fail("it was converted"))
    for name in load_catalog().loadable_ids:
        with pytest.raises(NoRoomError):
            load(load_catalog().find(name), device="cpu")


def test_spread_counts_devices_memory_and_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fits.shutil, "disk_usage", lambda place: SimpleNamespace(free=4 * GIB))
    check_spread("Seven", SEVEN, "bfloat16", {0: 8 * GIB, "cpu": 3 * GIB}, tmp_path / "not" / "there")
    with pytest.raises(ModelError, match=r"needs 14\.69 GiB .*; 10\.00 GiB of devices and memory and 4\.00 GiB on"):
        check_spread("Seven", SEVEN, "bfloat16", {0: 8 * GIB, "cpu": 2 * GIB}, tmp_path)


def test_every_gpu_and_the_memory_keep_the_overhead_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offload, "free_ram", lambda: 6 * GIB)
    monkeypatch.setattr(offload, "free_on", lambda device: (device.index + 1) * GIB)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert offload.limits(CPU) == {"cpu": 6 * GIB - OVERHEAD}
    assert offload.limits(torch.device("cuda")) == {
        0: GIB - OVERHEAD,
        1: 2 * GIB - OVERHEAD,
        "cpu": 6 * GIB - OVERHEAD,
    }
    assert set(offload.limits(torch.device("cuda:1"))) == {1, "cpu"}


def test_where_parts_are_is_told_in_order() -> None:
    assert offload.places({"a": "disk", "b": 1, "c": "cpu", "d": 0, "e": 0}) == "cuda:0 + cuda:1 + cpu + disk"


@pytest.mark.parametrize("limit", [0, 60_000, 110_000])
def test_a_model_that_lies_on_the_disk_makes_the_same_tokens(
    saved: Path, limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DECODESCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(loading, "limits", lambda place: {"cpu": limit})
    entry = added(str(saved))
    whole, spread = load(entry, device="cpu"), load(entry, device="cpu", offload=True)
    assert "disk" in spread.facts.device
    ids = torch.tensor([[1, 5, 9]])
    assert torch.equal(whole.model(ids).logits, spread.model(ids).logits)
    assert spread.facts.parameters == whole.facts.parameters
    asked = experiment().model_copy(update={"model": entry.id})
    traces = [finish(Conversation(loaded, asked)) for loaded in (whole, spread)]
    assert [step.token_id for step in traces[0].steps(0)] == [step.token_id for step in traces[1].steps(0)]


def test_a_model_to_be_spread_that_fits_in_one_place_is_there(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DECODESCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(loading, "limits", lambda place: {"cpu": GIB})
    loaded = load(added(str(saved)), device="cpu", offload=True)
    assert (loaded.device, loaded.facts.device) == (CPU, "cpu")


def test_what_cannot_look_into_a_spread_model_says_so(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DECODESCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(loading, "limits", lambda place: {"cpu": 0})
    loaded = load(added(str(saved)), device="cpu", offload=True)
    conversation = Conversation(loaded, experiment().model_copy(update={"model": loaded.facts.model_id}))
    finish(conversation)
    with pytest.raises(Refused, match="lie in memory or on the disk"):
        PROBES["residual"](conversation, turn=0, position=2)
