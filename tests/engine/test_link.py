"""A link gives back the very experiment and the place, holds nothing else, and says where it would be too long."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from engine.experiment import Experiment, ExperimentError, parse_experiment
from engine.link import MAX_BYTES, MAX_CHARACTERS, MAX_VALUES, Link, _inflated, _opened, link_from_text, link_to_text
from tests.engine.random_experiments import MODELS, TOOLS, changed, links, paths

ROOT = Path(__file__).parents[2]

FRANCE: dict[str, Any] = {
    "version": 1,
    "model": "smollm2-135m-instruct",
    "messages": [{"role": "user", "content": "What is the capital of France?"}],
    "sampling": {"temperature": 0.7, "top_k": 20, "top_p": 0.9, "repetition_penalty": 1.1, "seed": 1},
}

#: Made by this program's first version: links once given out stay readable.
GIVEN_OUT = "1.ctJ2S6M81ZAcpfgjjKLoSYQWlaCABxYq0PA2MtFBCiRwyNTWAgA"


def opened(text: str) -> Link:
    return link_from_text(text, models=MODELS, tools=TOOLS)


def inside(text: str) -> dict[str, Any]:
    """The JSON that a link carries."""
    data: dict[str, Any] = json.loads(_inflated(_opened(text)))
    return data


def link(**fields: Any) -> Link:
    experiment = parse_experiment(FRANCE | fields, models=MODELS, tools=TOOLS)
    return Link(experiment=experiment, step=5, layer=24, station="lens")


def test_a_thousand_links_give_back_what_went_in_and_hold_nothing_else() -> None:
    occurred: set[str] = set()
    count = 0

    @settings(max_examples=1_000, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(links())
    def check(link: Link) -> None:
        nonlocal count
        count += 1
        text = link_to_text(link)
        assert opened(text) == link
        assert len(text) <= MAX_CHARACTERS
        data = inside(text)
        place = data.pop("at", {})
        assert data == link.experiment.model_dump(mode="json", exclude_defaults=True)
        assert place == link.model_dump(mode="json", exclude={"experiment"}, exclude_defaults=True)
        assert set(data) <= set(Experiment.model_fields)
        occurred.update(changed(link))

    check()
    assert count >= 1_000
    assert occurred == set(paths(Link))


def test_a_link_given_out_stays_readable() -> None:
    assert opened(GIVEN_OUT) == link()


def test_the_first_experiment_makes_a_short_link() -> None:
    assert len(link_to_text(link())) < 80


def test_a_link_is_made_of_characters_that_an_address_takes_as_they_are() -> None:
    text = link_to_text(link(messages=[{"role": "user", "content": "你好 ␣ 👋 \x00 </script>"}]))
    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")


def test_what_does_not_fit_says_both_numbers_and_offers_the_record(monkeypatch) -> None:
    noise = "".join(chr(0x4E00 + (number * 7919) % 20_000) for number in range(4_000))
    long = link(messages=[{"role": "user", "content": noise}])
    with pytest.raises(ExperimentError, match="record") as refused:
        link_to_text(long)
    monkeypatch.setattr("engine.link.MAX_CHARACTERS", 1_000_000)
    assert re.findall(r"[\d,]+\d", str(refused.value)) == [f"{MAX_CHARACTERS:,}", f"{len(link_to_text(long)):,}"]
    with pytest.raises(ExperimentError, match=f"at most {MAX_BYTES:,} bytes"):
        link_to_text(link(messages=[{"role": "user", "content": "x" * (MAX_BYTES + 1)}]))
    with pytest.raises(ExperimentError, match=f"at most {MAX_VALUES:,} values"):
        link_to_text(link(sampling={"suppress_tokens": [1] * 1_000}, forced=[{"step": 0, "token_id": 1}] * 1_100))


@pytest.mark.parametrize(
    "fields", [{"step": 1, "position": 2}, {"station": "../lens"}, {"layer": -1}, {"head": 2**31}, {"answer": "Paris"}]
)
def test_a_place_is_checked_like_the_experiment(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="valid"):
        Link(experiment=link().experiment, **fields)


def test_the_documents_name_every_field_and_their_example_runs() -> None:
    section = (ROOT / "docs" / "api.md").read_text("utf-8").partition("## Link")[2].partition("## Trace")[0]
    assert set(Link.model_fields) - {"experiment"} <= set(re.findall(r"`(\w+)`", section))
    assert f"{MAX_CHARACTERS:,} characters" in section
    assert f"{MAX_BYTES:,} bytes" in section
    (example,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    exec(example, {})


def test_opening_touches_no_file_no_network_and_no_model() -> None:
    """In a fresh process with Python's own audit hook: after the first link no event of a file, socket or process."""
    code = (
        "import sys\n"
        "from engine.link import link_from_text\n"
        "read = lambda text: link_from_text(text, models=['smollm2-135m-instruct'], tools=[])\n"
        "seen, watching = [], False\n"
        "watched = ('open', 'socket.', 'subprocess.', 'os.', 'import', 'exec', 'ctypes.', 'urllib.')\n"
        "sys.addaudithook(lambda name, _: seen.append(name) if watching and name.startswith(watched) else None)\n"
        "read(sys.argv[1])\n"
        "watching = True\n"
        "for _ in range(10): read(sys.argv[1])\n"
        "watching = False\n"
        "open(sys.argv[2]).close()\n"
        "assert not {'torch', 'transformers', 'gradio', 'huggingface_hub'} & set(sys.modules)\n"
        "print(seen)\n"
    )
    arguments = [sys.executable, "-c", code, link_to_text(link()), str(ROOT / "README.md")]
    answer = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.stdout.strip() == "[]", answer.stdout + answer.stderr
