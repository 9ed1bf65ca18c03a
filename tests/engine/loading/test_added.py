"""Models that an operator adds from a folder: read without torch, and refused in one line where they cannot be had."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModelForCausalLM, FalconConfig, GPTBigCodeConfig, PreTrainedConfig
from transformers.cache_utils import DYNAMIC_LAYER_TYPE_MAPPING

from engine.catalog import FolderSource, ModelError, load_catalog
from engine.kv_cache import layer_kind
from engine.loading import hub_entry
from engine.loading.added import added, with_added
from engine.loading.hub import is_whole
from engine.loading.shape import count_parameters
from engine.model import LoadedModel, load
from engine.sizes import keeps_keys
from tests.engine.models import CONFIGS, tiny, tiny_tokenizer

ROOT = Path(__file__).parents[3]


def save(loaded: LoadedModel, folder: Path) -> Path:
    loaded.model.save_pretrained(folder)
    loaded.tokenizer.save_pretrained(folder)
    return folder


BIGCODE = GPTBigCodeConfig(vocab_size=320, n_embd=32, n_layer=2, n_head=4, n_positions=512, multi_query=True)
FALCON = FalconConfig(
    vocab_size=320, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_kv_heads=2, eos_token_id=0,
    new_decoder_architecture=True,
)  # fmt: skip


def of_family(config: PreTrainedConfig) -> LoadedModel:
    model = AutoModelForCausalLM.from_config(config)
    return LoadedModel.of(model, tiny_tokenizer(), model_id="x", title="X")


def told_alike(loaded: LoadedModel, folder: Path) -> None:
    entry, facts = added(str(save(loaded, folder))), loaded.facts
    shared = ("layers", "hidden_size", "heads", "kv_heads", "head_dim", "ffn_size", "vocab_rows", "context")
    for field in (*shared, "parameters", "tied_embeddings"):
        assert getattr(entry, field) == getattr(facts, field), field
    assert entry.kv_bytes_per_token(4) == facts.kv_bytes_per_token
    assert entry.weight_bytes == (folder / "model.safetensors").stat().st_size


@pytest.mark.parametrize("name", CONFIGS)
def test_the_facts_of_a_folder_are_those_of_the_loaded_model(tmp_path: Path, name: str) -> None:
    folder = tmp_path / f"Tiny {name}_1"
    told_alike(tiny(name), folder)
    entry = added(str(folder))
    assert (entry.id, entry.title) == (f"tiny-{name}-1", f"Tiny {name}_1")
    assert entry.source == FolderSource(kind="folder", folder=folder)


@pytest.mark.parametrize("config", [BIGCODE, FALCON], ids=["gpt_bigcode", "falcon"])
def test_families_with_words_of_their_own_are_told_alike(tmp_path: Path, config: PreTrainedConfig) -> None:
    told_alike(of_family(config), tmp_path / "model")


def test_layers_of_attention_may_be_told_by_their_numbers(tmp_path: Path) -> None:
    folder = save(tiny("hybrid"), tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"layer_types": None, "full_attn_idxs": [1]}))
    assert added(str(folder)).kv_layers == 1
    assert added(str(folder)).kv_bytes_per_token(4) == tiny("hybrid").facts.kv_bytes_per_token


@pytest.mark.parametrize("name", sorted(DYNAMIC_LAYER_TYPE_MAPPING))
def test_a_kind_of_layer_keeps_keys_where_its_cache_does(name: str) -> None:
    options = {"sliding_window": 4} if "sliding" in name or "chunked" in name else {}
    assert keeps_keys(name) == (layer_kind(DYNAMIC_LAYER_TYPE_MAPPING[name](**options)) in {"full", "sliding"})


def test_an_added_model_runs_under_the_id_it_was_given(tmp_path: Path) -> None:
    catalog = with_added(load_catalog(), (f"mine={save(tiny('llama'), tmp_path / 'folder')}",))
    assert catalog.loadable_ids[-1] == "mine"
    loaded = load(catalog.find("mine"), device="cpu")
    assert (loaded.facts.model_id, loaded.facts.title) == ("mine", "mine")
    assert loaded.entry == catalog.find("mine")


def test_tools_are_told_by_the_chat_template(tmp_path: Path, saved: Path) -> None:
    assert not added(str(saved)).tools
    folder = tmp_path / "with-tools"
    shutil.copytree(saved, folder)
    (folder / "chat_template.jinja").write_text("{% if tools %}{{ tools | tojson }}{% endif %}")
    assert added(str(folder)).tools


@pytest.fixture
def copy(tmp_path: Path, saved: Path) -> Path:
    folder = tmp_path / "copy"
    shutil.copytree(saved, folder)
    return folder


def change_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"quantization_config": {"quant_method": "gptq"}}, "is stored quantised; only plain weights are read"),
        ({"num_hidden_layers": 0}, "layers: Input should be greater than 0"),
        ({"vocab_size": "many"}, "vocab_rows: Input should be greater than 0"),
        ({"model_type": None, "auto_map": {"AutoModel": "x.Y"}}, "needs code of its own, which is never run"),
    ],
)
def test_a_config_that_will_not_do_is_told(copy: Path, changes: dict[str, Any], said: str) -> None:
    change_config(copy, **changes)
    with pytest.raises(ModelError, match=said):
        added(str(copy))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("config.json", b"[]", "config.json holds no object"),
        ("config.json", b"{", "config.json cannot be read"),
        ("model.safetensors", b"", "is no safetensors file"),
        ("model.safetensors", b"\xff" * 8 + b"{}", "its header is too long"),
        ("model.safetensors", (5).to_bytes(8, "little") + b"{xxxx", "is no safetensors file"),
    ],
)
def test_a_broken_file_is_told(copy: Path, name: str, content: bytes, said: str) -> None:
    (copy / name).write_bytes(content)
    with pytest.raises(ModelError, match=said):
        added(str(copy))


def test_pickles_alone_are_refused(copy: Path) -> None:
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"has no model\.safetensors and no .+; nothing else is loaded"):
        added(str(copy))


@pytest.mark.parametrize("shard", ["1GB", "60KB"])
def test_weights_that_are_not_loaded_are_not_counted(tmp_path: Path, shard: str) -> None:
    tiny("llama").model.save_pretrained(tmp_path / "model", max_shard_size=shard)
    tiny("llama").tokenizer.save_pretrained(tmp_path / "model")
    before = added(str(tmp_path / "model"))
    some = next((tmp_path / "model").glob("*.safetensors"))
    shutil.copy(some, tmp_path / "model" / "consolidated.safetensors")
    (tmp_path / "model" / "adapter.safetensors").write_text("no weights at all")
    assert added(str(tmp_path / "model")) == before
    assert before.parameters == tiny("llama").facts.parameters


def test_the_whole_comes_before_the_parts(copy: Path, sharded: Path) -> None:
    """As for transformers; so a download that brings a needless index along is whole too."""
    before = added(str(copy))
    for path in sharded.glob("model*"):
        shutil.copy(path, copy)
    assert added(str(copy)) == before
    next(copy.glob("model-*")).unlink()
    assert is_whole(copy)


@pytest.mark.parametrize("index", ["[]", "{", '{"weight_map": {}}', '{"weight_map": {"x": 3}}'])
def test_an_index_that_names_no_parts_is_told(copy: Path, index: str) -> None:
    (copy / "model.safetensors").rename(copy / "consolidated.safetensors")
    (copy / "model.safetensors.index.json").write_text(index)
    with pytest.raises(ModelError, match="nothing else is loaded"):
        added(str(copy))


def test_a_part_that_is_not_there_is_told(copy: Path) -> None:
    (copy / "model.safetensors").unlink()
    (copy / "model.safetensors.index.json").write_text('{"weight_map": {"x": "model-1.safetensors"}}')
    with pytest.raises(ModelError, match=r"model-1\.safetensors is no safetensors file"):
        added(str(copy))


def test_code_of_the_folder_is_never_run(copy: Path) -> None:
    (copy / "evil.py").write_text("raise SystemExit('ran')")
    change_config(copy, model_type="evil", auto_map={"AutoConfig": "evil.C", "AutoModelForCausalLM": "evil.M"})
    entry = added(str(copy))
    with pytest.raises(ModelError, match="cannot be loaded"):
        load(entry, device="cpu")


@pytest.mark.parametrize("spec", ["", "nowhere", "https://example.org/x", "a/b/c", "=", "a b/c"])
def test_what_is_neither_folder_nor_id_is_refused(spec: str) -> None:
    with pytest.raises(ModelError, match="neither a folder that is there nor an id like org/name"):
        added(spec)


@pytest.mark.parametrize("where", ["./my-model", "../my-model", "/no/such/folder", "~/no-such-folder"])
def test_a_folder_that_is_not_there_is_never_asked_of_the_hub(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hub_entry, "resolved", lambda *_: pytest.fail("the Hub was asked"))
    for spec in ("./file", where, f"mine={where}"):
        with pytest.raises(ModelError, match=f"^--add-model '{re.escape(spec)}': there is no such folder$"):
            added(spec)


@pytest.mark.parametrize("name", ["UPPER", "a b", "../x", "x" * 61, "-"])
def test_an_id_of_other_letters_is_refused(saved: Path, name: str) -> None:
    with pytest.raises(ModelError, match="is no id; small letters"):
        added(f"{name}={saved}")


@pytest.mark.parametrize("name", ["gpt2", "mine"])
def test_an_id_that_is_taken_is_refused(saved: Path, name: str) -> None:
    with pytest.raises(ModelError, match=f"the id '{name}' is taken already"):
        with_added(load_catalog(), (f"mine={saved}", f"{name}={saved}"))


def test_constants_of_old_files_are_no_parameters() -> None:
    tensors = {
        "h.0.attn.bias": (1, 1, 1024, 1024),
        "h.0.attn.masked_bias": (),
        "model.rotary_emb.inv_freq": (32,),
        "h.0.attn.c_attn.bias": (2304,),
        "wte.weight": (10, 4),
        "lm_head.weight": (10, 4),
    }
    assert count_parameters(tensors, tied=True) == 2304 + 40
    assert count_parameters(tensors, tied=False) == 2304 + 80


def test_adding_a_folder_needs_no_torch(saved: Path) -> None:
    code = (
        "import sys; from engine.loading.added import added; added(sys.argv[1]); "
        "print([name for name in ('torch', 'transformers', 'huggingface_hub') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code, saved], capture_output=True, text=True, check=True, cwd=ROOT)
    assert answer.stdout.strip() == "[]"
