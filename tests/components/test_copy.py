import ast
import re
from pathlib import Path

import pytest

from components import copy
from components.copy import listed, sentences, speak, words, words_in
from engine.wording import parse

COMPONENTS = Path(copy.__file__).parent
ENGLISH = copy.FOLDER / "en"

SAMPLE = """# Prompt

Two lines
of one paragraph.

Another.

## count
{n:,} tokens

## long
First.

Second {name!r}.
"""


def test_title_intro_and_sections_are_read():
    read = parse("prompt", SAMPLE)
    assert read.title == "Prompt"
    assert read.intro == "Two lines of one paragraph.\n\nAnother."
    assert set(read.sections) == {"count", "long"}
    assert read.text("count", n=1234) == "1,234 tokens"
    assert read.text("long", name="{x}") == "First.\n\nSecond '{x}'."


def test_values_are_never_read_as_templates():
    assert parse("s", "# S\n\n## a\n<{value}>").text("a", value="{n} ${n}") == "<{n} ${n}>"


@pytest.mark.parametrize(
    ("source", "complaint"),
    [("no title", "does not begin"), ("## a\nx", "does not begin"), ("# T\n## a\nx\n## a\ny", "twice")],
)
def test_a_malformed_file_is_refused(source, complaint):
    with pytest.raises(ValueError, match=complaint):
        parse("s", source)


def test_an_unknown_key_names_the_station():
    with pytest.raises(KeyError, match="'s' has no section 'b'"):
        parse("s", "# S\n\n## a\nx").text("b")


@pytest.mark.parametrize("name", ["../en/prompt", "Prompt", "", "a/b", "a.md"])
def test_a_name_is_never_a_path(name):
    with pytest.raises(ValueError, match="not a name"):
        words(name)
    with pytest.raises(ValueError, match="not a name"):
        words_in(name, "prompt")


# --- every key that a module asks for exists, and every key that exists is asked for ---


class Use:
    """What a module of components/ says about copy: the stations it reads, its strings, the keys it asks for."""

    def __init__(self, path: Path) -> None:
        self.name = path.stem
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        self.constants = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
        self.named = {
            target.id: n.value.value
            for n in nodes
            if isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant)
            for target in n.targets
            if isinstance(target, ast.Name)
        }
        calls = [n for n in nodes if isinstance(n, ast.Call) and n.args]
        named = [n for n in calls if isinstance(n.func, ast.Name)]
        self.asked = [n.args[0] for n in named if n.func.id == "words"]
        # `say_to(visit)` speaks the page's words, `say_to(visit, station)` those of another file.
        self.asked += [[*n.args, ast.Constant("page")][1] for n in named if n.func.id == "say_to"]
        keys = [n.args[0] for n in calls if isinstance(n.func, ast.Attribute) and n.func.attr == "text"]
        self.keys = {k.value for k in keys if isinstance(k, ast.Constant) and isinstance(k.value, str)}
        self.patterns = {pattern(k) for k in keys if isinstance(k, ast.JoinedStr)}
        # A key may also be put together elsewhere and handed on.
        self.built = {pattern(n) for n in nodes if isinstance(n, ast.JoinedStr)} - {".+"}

    def stations(self, panels: set[str]) -> set[str]:
        """The copy files it reads; `words(panel.STATION)` reads those of all panels."""
        found: set[str] = set()
        for argument in self.asked:
            if isinstance(argument, ast.Constant):
                found.add(argument.value)
            elif isinstance(argument, ast.Name):
                found |= {self.named[argument.id]} if argument.id in self.named else set()  # a parameter: the caller's
            else:
                found |= panels
        return found


def pattern(key: ast.JoinedStr) -> str:
    """A computed key (f"role_{role}") as a regular expression."""
    return "".join(re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".+" for part in key.values)


USES = [Use(path) for path in sorted(COMPONENTS.rglob("*.py"))]
PANELS = {use.named["STATION"] for use in USES if "STATION" in use.named}
READERS = [use for use in USES if use.asked and use.name != "in_words"]  # whose keys are the engine's
FILES = sorted(path for path in ENGLISH.glob("*.md") if path.stem != "refusals")  # whose keys test_in_words.py knows


def test_modules_and_files_are_found():
    assert {"prompt", "tokens", "tensors", "run_table"} <= PANELS
    assert {path.stem for path in FILES} >= PANELS


@pytest.mark.parametrize("use", READERS, ids=lambda use: use.name)
def test_every_key_asked_for_exists(use):
    known = set().union(*(words(station).sections for station in use.stations(PANELS)))
    assert use.keys <= known
    for expression in use.patterns:
        assert any(re.fullmatch(expression, key) for key in known), expression


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_key_that_exists_is_asked_for(path):
    readers = [use for use in READERS if path.stem in use.stations(PANELS)]
    asked = set().union(*(use.constants for use in readers))
    built = set().union(*(use.patterns | use.built for use in readers))
    unused = {
        key
        for key in words(path.stem).sections
        if key not in asked and not any(re.fullmatch(expression, key) for expression in built)
    }
    assert not unused


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_has_its_title_and_every_panel_says_what_is_seen(path):
    read = words(path.stem)
    assert read.title
    assert read.intro or path.stem not in PANELS
    assert all(read.sections.values())


def test_sentences_are_joined_as_their_language_does():
    assert sentences("One.", None, "Two.", "") == "One. Two."
    assert sentences("甲。", "乙。") == "甲。乙。"
    assert sentences("p = 0.5", "乙。") == "p = 0.5 乙。"
    assert sentences() == ""
    assert listed(["a", "b"]) == "a; b"
    speak("zh")
    assert listed(["甲", "乙"]) == "甲；乙"
    speak("en")


# --- a count and what is counted agree ---

#: Words in s that may follow a place and count nothing.
NOTHING_COUNTED = {
    *("adds", "as", "begins", "computes", "counts", "devices", "does", "ends", "forbids", "goes", "has", "holds", "is"),
    *(
        "its",
        "keeps",
        "marks",
        "nats",
        "needs",
        "projects",
        "ranks",
        "reuses",
        "rounds",
        "speaks",
        "stands",
        "takes",
        "this",
    ),
    *("this", "tok/s", "turns", "was", "weights"),
}
#: Places whose number is never 1: limits of the program, sizes of a model or of files, multiples; or no number at all.
NEVER_ONE = {
    "attention": {"queries", "all", "positions"},
    "checks": {"measured"},
    "context": {"context"},
    "embedding": {"hidden", "rows", "share", "scale", "rotated", "length", "count:positions"},
    "feed_forward": {"neurons"},
    "kv_cache": {"head_dim", "each", "one", "total", "count:positions"},
    "layer": {"count:operations", "times", "group"},
    "model": {"group", "times", "tokens", "total", "numbers", "shape"},
    "record": {"size", "most"},
    "record_page": {"count", "most"},
    "refusals": {
        *(
            "most",
            "limit",
            "needed",
            "context",
            "allowed",
            "kept",
            "expected",
            "last",
            "place",
            "device",
            "count:values",
        ),
        *("count:sessions", "found", "model"),
    },
    "run_table": {"shape", "fed"},
    "tensors": {"fed", "last", "reused", "next"},
}
COUNTED = re.compile(r"\{(\w+)(?::[^}|]*)?\} (?:[\w/-]+ ){0,2}?([\w/-]+s)\b")
AGREEING = re.compile(r"\{(\w+)(?::[^}|]*)?\} (?:of them )?(are|were|have|do|go|come|belong|stand|push|carry|see)\b")


@pytest.mark.parametrize("path", [*FILES, ENGLISH / "refusals.md"], ids=lambda path: path.stem)
def test_what_is_counted_has_a_form_for_one(path):
    never, wrong = NEVER_ONE.get(path.stem, set()), []
    for key, text in words(path.stem).sections.items():
        for place, word in [*COUNTED.findall(text), *AGREEING.findall(text)]:
            if word not in NOTHING_COUNTED and not {place, f"{place}:{word}"} & never:
                wrong.append(f"{key}: {{{place}}} {word}")
    assert wrong == []


def test_one_has_a_word_of_its_own():
    read = parse("s", "# S\n\n## a\n{n:,} {n:token was|tokens were} made, {m} {m:is|are} |x|")
    assert read.text("a", n=1, m=0) == "1 token was made, 0 are |x|"
    assert read.text("a", n=1_000, m="1") == "1,000 tokens were made, 1 is |x|"
    assert parse("s", "# S\n\n## a\n{n:a|b} {text}").text("a", n=2, text="{n} | {x}") == "b {n} | {x}"


def test_every_form_goes_with_a_place_that_is_shown():
    for path in [*FILES, ENGLISH / "refusals.md"]:
        for key, text in words(path.stem).sections.items():
            shown = re.findall(r"\{(\w+)(?::[^}|]*)?(?:![rs])?\}", text)
            formed = re.findall(r"\{(\w+):[^}]*\|[^}]*\}", text)
            assert set(formed) <= set(shown), f"{path.stem}.{key}"
