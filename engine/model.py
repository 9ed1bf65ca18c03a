"""Load a model of the catalogue onto a device; `LoadedModel` is what everything else in the engine works with."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast

from engine import attention
from engine.catalog import EmbeddedSource, Entry, FolderSource, HubSource, ModelError
from engine.embedded import cache_root, embedded_folder
from engine.facts import ModelFacts
from engine.linear import choose_products
from engine.loading.devices import pick_device, pick_dtype
from engine.loading.fits import check_fits, check_spread
from engine.loading.hub import hub_folder
from engine.loading.offload import limits, places
from engine.loading.progress import Progress, Report, unheard
from engine.loading.quantized import four_bits
from engine.model_facts import read_facts
from engine.said import said


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model ready to run (eval mode, no gradients), its tokenizer, and its facts."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    facts: ModelFacts
    device: torch.device
    entry: Entry | None = None  # in the catalogue

    @classmethod
    def of(cls, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, *, model_id: str, title: str) -> Self:
        """Take a model as it stands, on the device it is on: eval mode, frozen weights, this program's attention.

        A family that computes attention by itself (ALiBi), or adds learned sinks to the softmax, keeps its own.
        """
        model.eval().requires_grad_(False)
        sinks = any(name.endswith("sinks") for name, _ in model.named_parameters())
        if model._supports_attention_backend and not sinks:
            model.set_attn_implementation(attention.NAME)
        choose_products(model)
        return cls(model, tokenizer, read_facts(model, tokenizer, model_id=model_id, title=title), model.device)


def load(
    entry: Entry,
    *,
    device: str = "auto",
    dtype: str = "auto",
    quantize: str = "none",
    offload: bool = False,
    report: Report = unheard,
) -> LoadedModel:
    """Load an entry's weights: safetensors only, no code of the repository. Whether it fits is checked before.

    Args:
        device: "auto" takes CUDA, else MPS, else the CPU; or one of these by name, "cuda:1" included.
        dtype: "auto" is float32 on the CPU and bfloat16 elsewhere; or "float32", "bfloat16", "float16".
        quantize: "none", or "4bit" for weights of 4 bits by bitsandbytes, on CUDA.
        offload: spread the model over GPUs, memory and disk.
        report: hears how far it has come, on the thread that loads.

    Raises:
        ModelError: the entry has no weights, it does not fit, or the weights, the device or the dtype cannot be had;
            says what to do.
    """
    if entry.source is None:
        raise ModelError(said("shape_only", title=entry.title))
    place = pick_device(device)
    number = pick_dtype(dtype, place)
    kind = quantize if quantize != "none" else str(number).removeprefix("torch.")
    options: dict[str, Any] = {}
    if quantize == "4bit":
        options["quantization_config"] = four_bits(place, number)
    if offload:
        disk = cache_root() / "offload" / entry.id
        room = limits(place)
        check_spread(entry.title, entry, kind, room, disk)
        options |= {"device_map": "auto", "max_memory": room, "offload_folder": str(disk)}
    else:
        check_fits(entry.title, entry, kind, place)
        options |= {"device_map": {"": place}} if place.type == "cuda" else {}
    folder = _folder(entry, report)
    report(Progress("reading"))
    with _told(entry.title, folder):
        tokenizer, model = _read(folder, entry.title, dtype=number, **options)
        if not options:
            model.to(place)  # type: ignore[arg-type]  # transformers' wrapper of `to` hides the method's self from mypy
        loaded = replace(LoadedModel.of(model, tokenizer, model_id=entry.id, title=entry.title), entry=entry)
    # Where one place takes the whole model there is no map: the model says by itself where it is.
    device_map: Any = getattr(model, "hf_device_map", None)
    if not offload or device_map is None:
        return loaded
    return replace(loaded, device=place, facts=replace(loaded.facts, device=places(device_map)))


def _read(folder: Path, title: str, **options: Any) -> tuple[PreTrainedTokenizerFast, PreTrainedModel]:
    """Tokenizer and model. Weights that are missing or of another shape are refused: transformers draws random ones."""
    local: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
    tokenizer = AutoTokenizer.from_pretrained(folder, **local)
    read: Any = AutoModelForCausalLM.from_pretrained(  # typed as a model alone
        folder, use_safetensors=True, output_loading_info=True, ignore_mismatched_sizes=True, **local, **options
    )
    model, info = read
    if unlike := sorted(info["mismatched_keys"]):
        name, *shapes = unlike[0]
        stored, wanted = ("×".join(str(size) for size in shape) for shape in shapes)
        raise ModelError(
            said("weights_unlike", title=title, folder=folder.name, name=name, stored=stored, wanted=wanted)
        )
    if missing := sorted(info["missing_keys"]):
        raise ModelError(said("weights_missing", title=title, folder=folder.name, count=len(missing), name=missing[0]))
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise ModelError(said("no_fast_tokenizer", title=title))
    return tokenizer, model


@contextmanager
def _told(title: str, folder: Path) -> Iterator[None]:
    """What transformers raises over files that anybody may have written, as a `ModelError` of one line.

    A visitor may read it: of the folder it gives the name only.
    """

    def reason(error: BaseException) -> str:
        return _first_line(error).replace(str(folder), folder.name)

    try:
        yield
    except ModelError:
        raise
    except SafetensorError as error:
        raise ModelError(said("weights_damaged", title=title, folder=folder.name, reason=reason(error))) from error
    except StrictDataclassError as error:  # a field of the config; the cause says which and why
        why = f"config.json: {reason(error.__cause__ or error)}"
        raise ModelError(said("cannot_load_from", title=title, folder=folder.name, reason=why)) from error
    except (OSError, ValueError, KeyError) as error:
        why = reason(error) or type(error).__name__
        raise ModelError(said("cannot_load_from", title=title, folder=folder.name, reason=why)) from error
    except (RuntimeError, ImportError, TypeError, AttributeError, ArithmeticError, AssertionError) as error:
        # Numbers of the config that nothing checked, or a package that is missing.
        why = f"{type(error).__name__}: {reason(error)}"
        raise ModelError(said("cannot_load_from", title=title, folder=folder.name, reason=why)) from error


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), "")


def _folder(entry: Entry, report: Report) -> Path:
    """Where the files are, once they are there."""
    match entry.source:
        case EmbeddedSource() as source:
            report(Progress("converting"))
            return embedded_folder(source, title=entry.title)
        case HubSource() as source:
            return hub_folder(source, title=entry.title, report=report)
        case FolderSource() as source if source.folder.is_dir():
            return source.folder
    raise ModelError(said("folder_gone", title=entry.title))
