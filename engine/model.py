"""Load a model of the catalogue onto a device; `LoadedModel` is what everything else in the engine works with."""

from dataclasses import dataclass
from typing import Self

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast

from engine import attention
from engine.catalog import EmbeddedSource, Entry, HubSource, ModelError
from engine.embedded import embedded_folder
from engine.facts import ModelFacts
from engine.model_facts import read_facts

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
DEVICES = ("cuda", "mps", "cpu")


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model ready to run (eval mode, no gradients), its tokenizer, and its facts."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    facts: ModelFacts
    device: torch.device

    @classmethod
    def of(cls, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, *, model_id: str, title: str) -> Self:
        """Take a model as it stands, on the device it is on: eval mode, frozen weights, this program's attention.

        A family that computes attention by itself (ALiBi), or adds learned sinks to the softmax, keeps its own.
        """
        model.eval().requires_grad_(False)
        sinks = any(name.endswith("sinks") for name, _ in model.named_parameters())
        if model._supports_attention_backend and not sinks:
            model.set_attn_implementation(attention.NAME)
        return cls(model, tokenizer, read_facts(model, tokenizer, model_id=model_id, title=title), model.device)


def load(entry: Entry, *, device: str = "auto", dtype: str = "auto") -> LoadedModel:
    """Load an entry's weights: safetensors only, no code of the repository.

    Args:
        device: "auto" takes CUDA, else MPS, else the CPU; or one of these by name, "cuda:1" included.
        dtype: "auto" is float32 on the CPU and bfloat16 elsewhere; or "float32", "bfloat16", "float16".

    Raises:
        ModelError: the entry has no weights, or the weights, the device or the dtype cannot be had; says what to do.
    """
    place = pick_device(device)
    number = pick_dtype(dtype, place)
    name, options = _where(entry)
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False, **options)
        model = AutoModelForCausalLM.from_pretrained(
            name, dtype=number, use_safetensors=True, trust_remote_code=False, **options
        )
    except (OSError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ModelError(f"{entry.title} cannot be loaded from {name}: {reason}") from error
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise ModelError(f"{entry.title} has no tokenizer of the tokenizers library")
    model.to(place)  # type: ignore[arg-type]  # transformers' wrapper of `to` hides the method's self from mypy
    return LoadedModel.of(model, tokenizer, model_id=entry.id, title=entry.title)


def pick_device(name: str) -> torch.device:
    """The device of that name, or the best there is for "auto". Raises `ModelError` where it cannot be used."""
    usable = [kind for kind in DEVICES if _usable(kind)]
    if name == "auto":
        return torch.device(usable[0])
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in usable:
        raise ModelError(f"device {name!r} cannot be used here; there is: auto, {', '.join(usable)}")
    return device


def pick_dtype(name: str, device: torch.device) -> torch.dtype:
    """The dtype of that name, or the device's usual one for "auto". Raises `ModelError` for another name."""
    if name == "auto":
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    if name not in DTYPES:
        raise ModelError(f"unknown dtype {name!r}; allowed: auto, {', '.join(DTYPES)}")
    return DTYPES[name]


def _usable(kind: str) -> bool:
    if kind == "cuda":
        return torch.cuda.is_available()
    return kind == "cpu" or torch.backends.mps.is_available()


def _where(entry: Entry) -> tuple[str, dict[str, str | bool]]:
    """What `from_pretrained` is given: a folder or a repository, and the options that pin it."""
    match entry.source:
        case EmbeddedSource() as source:
            return str(embedded_folder(source, title=entry.title)), {"local_files_only": True}
        case HubSource() as source:
            return source.repo, {"revision": source.revision}
    raise ModelError(f"{entry.title} is known by its shape only; it cannot be loaded")
