"""The model panel: hard parameters of the facts, shares that sum to the whole, and nothing that a click could break."""

import dataclasses
from typing import get_args

import plotly.graph_objects as go
import pytest

from components.model import panel
from components.model.memory import memory_value
from components.model.parameters import parameters_value
from components.model.parts import ORDER, areas_figure, parts_value, where_note
from components.panel import Recorded
from components.units import bytes_text, share_text
from components.widgets.host import read
from engine.answers.memory import Memory, Need
from engine.answers.model import Model, Part
from engine.model import LoadedModel
from engine.playback import NotRecorded
from engine.probes.model import measure
from tests.components.handmade import make_facts, make_view
from tests.components.looking import cells, look, notes
from tests.components.reading import read_figure, station
from tests.engine.models import CONFIGS, tiny


def of(name: str) -> tuple[Model, LoadedModel]:
    return measure(tiny(name).model, tiny(name).facts), tiny(name)


def hard(name: str) -> dict[str, tuple[str, str]]:
    found, loaded = of(name)
    return {row[0]: (row[1], row[2]) for row in cells(parameters_value(found, loaded.facts))}


def test_layers_without_attention_and_an_activation_without_a_name_are_told_as_they_are() -> None:
    """The hybrid's feed-forward: 64 · 2/3 rounded up to a multiple of 256, whatever its config says."""
    hybrid, llama = hard("hybrid"), hard("llama")
    assert hybrid["layers"] == (
        "3", "1 of 3 adds attention to the stream; the others mix positions in another way",
    )  # fmt: skip
    assert llama["layers"][1] == "each adds attention and a feed-forward to the stream"
    assert (hybrid["activation"][0], llama["activation"][0]) == ("gated", "silu, gated")
    assert hybrid["feed-forward size"] == ("256", "neurons in a layer's feed-forward, 8.00 times the hidden size")
    found, loaded = of("gpt2")
    rows = parameters_value(dataclasses.replace(found, activation=""), loaded.facts)
    assert "activation" not in [row[0] for row in cells(rows)]


def test_the_panel_shows_the_probe_s_numbers(llama: LoadedModel) -> None:
    with look(llama) as looked:
        view = looked()
        _, needs, remark, chart, parts = panel.render(view)
        found = view.results["model"]
        memory = view.results["memory"]
        assert panel.unavailable(view) is None
    assert found.counted == llama.facts.parameters == 39072
    rows = {row[0]: row for row in cells(parts)}
    assert rows["gate"] == ["gate", "64 × 32", "2,048", "4,096", "10.5%", "16.00 KiB"]
    assert rows["embedding"][1:4] == ["320 × 32", "", "10,240"]
    assert rows["norms"][2:4] == ["64", "160"]
    assert rows["all"][3] == "39,072"
    assert "there are 39,072; the library counts 39,072" in notes(remark)[0][1]
    # feed-forward 12,288, attention 6,144, embedding 10,240 of 39,072; the rest is norms and head
    assert notes(remark)[0][1].startswith(
        "Feed-forward 31.4%, attention 15.7%, embedding 26.2%, everything else 26.6%."
    )
    go.Figure(read_figure(chart))
    # 512 MiB and the weights, 39,072 numbers at 4 and at 2 bytes
    assert cells(needs) == [
        ["float32", "152.62 KiB", "512.15 MiB", "loaded now: 152.62 KiB"],
        ["bfloat16", "76.31 KiB", "512.07 MiB", "would fit"],
        ["4bit", "49.37 KiB", "512.05 MiB", "needs an NVIDIA GPU"],
    ]
    assert bytes_text(memory.free) in read(needs)["caption"]
    assert station(panel, view) == ("39.1K", "2 layers")


def test_memory_that_is_not_there_is_told() -> None:
    needs = tuple(Need(kind, size, size + 10) for kind, size in (("float32", 400), ("bfloat16", 200), ("4bit", 60)))
    memory = Memory("MIT", "org/name", "c" * 40, 210, "cuda:0", "4bit", 61, 205, needs)
    said = [row[3] for row in cells(memory_value(memory))]
    assert said == ["would not fit", "would not fit", "loaded now: 61 B"]


def test_the_numbers_that_are_loaded_are_marked_whatever_they_are() -> None:
    needs = tuple(Need(kind, 200, 210) for kind in ("float32", "bfloat16", "float16", "4bit"))
    memory = Memory("MIT", "org/name", "c" * 40, 210, "cuda:0", "float16", 201, 999, needs)
    lines = cells(memory_value(memory))
    assert [row[0] for row in lines if row[3] == "loaded now: 201 B"] == ["float16"]


def test_where_a_model_comes_from_is_told() -> None:
    found, loaded = of("llama")
    memory = Memory("MIT", "org/name", "c0ffee" + "1" * 34, 2048, "cpu", "float32", 1, 1, ())
    lines = {row[0]: row[1:] for row in cells(parameters_value(found, loaded.facts, memory))}
    assert (lines["licence"][0], lines["source"][0], lines["weight files"][0]) == ("MIT", "org/name", "2.00 KiB")
    assert lines["revision"][0] == "c0ffee111111"
    assert "c0ffee" + "1" * 34 in lines["revision"][1]
    folder = dataclasses.replace(memory, revision=None, stored=None)
    lines = {row[0]: row[1:] for row in cells(parameters_value(found, loaded.facts, folder))}
    assert not {"revision", "weight files"} & set(lines)
    assert "licence" not in {row[0] for row in cells(parameters_value(found, loaded.facts))}


def test_hard_parameters_by_family() -> None:
    llama, gpt2, capped, sliding = (hard(name) for name in ("llama", "gpt2", "capped", "sliding"))
    assert llama["KV heads"] == ("2", "2 query heads share the keys and values of one: the cache is 2 times smaller")
    assert llama["positions"][0] == "rotary, θ = 10,000"
    assert llama["head size"] == ("8", "numbers in a query, key or value; scores are divided by its square root, 2.83")
    assert capped["head size"][1].endswith("scores are multiplied by 0.2236")  # 20 ** -0.5, by its config
    assert llama["activation"][0] == "silu, gated"
    assert llama["output head"][0] == "its own"
    assert "320" in llama["rows of the embedding"][0]
    assert "rows belong to none" in llama["rows of the embedding"][1]
    assert llama["norm"][0] == "LlamaRMSNorm, ε = 1e-06"
    # 2 × 2 layers × 2 KV heads × 8 × 4 bytes
    assert llama["cache a token"][0] == "256 B"
    assert "128.00 KiB" in llama["cache a token"][1]  # 512 positions
    assert gpt2["positions"][0] == "learned"
    assert gpt2["activation"][0] == "gelu_new"
    assert gpt2["output head"][0] == "tied"
    assert gpt2["KV heads"][1] == "every query head has keys and values of its own"
    assert (capped["cap on scores"][0], capped["cap on logits"][0]) == ("2", "4")
    assert sliding["sliding window"] == ("16", "2 of 2 layers see only so many positions, themselves included")
    assert "sliding window" not in llama
    assert "query and key norm" in hard("qwen3")


def test_scaled_and_unknown_positions_are_told() -> None:
    found, loaded = of("llama")
    scaled = dataclasses.replace(found, rope_type="yarn")
    assert "rotary (yarn), θ = 10,000" in {row[1] for row in cells(parameters_value(scaled, loaded.facts))}
    bare = dataclasses.replace(found, score_scaling=None)
    assert "numbers in a query, key or value" in {row[2] for row in cells(parameters_value(bare, loaded.facts))}
    unknown = dataclasses.replace(found, rope_theta=None)
    assert "another way" in {row[1] for row in cells(parameters_value(unknown, loaded.facts))}


@pytest.mark.parametrize("name", list(CONFIGS))
def test_areas_and_lines_sum_to_the_whole(name: str) -> None:
    found, loaded = of(name)
    chart = areas_figure(found, 200)["data"][0]
    top = [value for value, parent in zip(chart["values"], chart["parents"], strict=True) if not parent]
    assert sum(top) == found.counted
    for group in ("attention", "feed_forward"):
        inner = [value for value, parent in zip(chart["values"], chart["parents"], strict=True) if parent == group]
        assert sum(inner) == (chart["values"][chart["ids"].index(group)] if inner else 0)
    rows = cells(parts_value(found, loaded.facts.tied_embeddings))
    numbers = [int(row[3].replace(",", "")) for row in rows[:-1] if "tied" not in row[3]]
    assert sum(numbers) == found.counted == int(rows[-1][3].replace(",", ""))
    assert any("tied" in row[3] for row in rows) is loaded.facts.tied_embeddings
    go.Figure(areas_figure(found, 200))


def test_a_sum_that_is_off_is_told() -> None:
    found, _ = of("llama")
    assert "but the library counts 7" in notes(where_note(dataclasses.replace(found, parameters=7), False))[0][1]


def test_fused_and_unlike_layers_are_named() -> None:
    found, _ = of("gpt2")
    assert (
        dict(zip(*[[row[i] for row in cells(parts_value(found, True))] for i in (0, 1)], strict=True))["key"]
        == "part of 32 × 96"
    )
    hybrid, _ = of("hybrid")
    by_part = {row[0]: row for row in cells(parts_value(hybrid, True))}
    assert by_part["query"][2] == "0 – 1,024"


def test_texts_and_order() -> None:
    assert set(ORDER) == set(get_args(Part))
    assert [share_text(share) for share in (0.0, 0.0001, 0.2105, 1.0)] == ["0.0%", "<0.1%", "21.1%", "100.0%"]
    assert [panel.count_text(count) for count in (999, 1000, 134_515_008, 7_600_000_000)] == [
        "999", "1.0K", "134.5M", "7.6B",
    ]  # fmt: skip
    assert "no model is loaded" in str(panel.unavailable(make_view()))
    assert station(panel, make_view()) == ("1.0K", f"{make_facts().layers} layers")


def test_a_record_without_the_machine_s_memory_shows_the_rest(llama: LoadedModel) -> None:
    with look(llama) as looked:
        view = looked()

        def probe(name: str, **arguments: object) -> object:
            if name == "memory":
                raise NotRecorded(name)
            return view.probe(name, **arguments)

        shown = dataclasses.replace(view, probe=probe, recorded=Recorded(1, 1, "test", alone=True))
        parameters, memory, *_ = panel.render(shown)
        assert memory is None
        assert cells(parameters)
        with pytest.raises(NotRecorded):
            panel.render(dataclasses.replace(shown, recorded=None))
