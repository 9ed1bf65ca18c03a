"""The other languages say all that English says, with the same places for values, in their own letters and marks."""

import re
from string import Formatter

import pytest

from components.copy import DEFAULT, FOLDER, LANGUAGES, words_in
from engine.wording import Words

OTHERS = [language for language in LANGUAGES if language != DEFAULT]
STATIONS = sorted(path.stem for path in (FOLDER / DEFAULT).glob("*.md"))
BOTH = [(language, station) for language in OTHERS for station in STATIONS]

HAN = r"[\u4e00-\u9fff]"


def read(language: str, station: str) -> Words:
    return words_in(language, station)


def texts(found: Words) -> dict[str, str]:
    return {"# title": found.title, "# intro": found.intro, **found.sections}


def places(text: str) -> list[tuple[str, str, str]]:
    """Name, format and conversion of each place for a value; the forms of a word are those of a language."""
    found = ((name, form or "", how or "") for _, name, form, how in Formatter().parse(text) if name is not None)
    return sorted(place for place in found if "|" not in place[1])


@pytest.mark.parametrize("language", OTHERS)
def test_a_language_has_the_files_of_english_and_no_others(language: str) -> None:
    assert {path.stem for path in (FOLDER / language).glob("*.md")} == set(STATIONS)


@pytest.mark.parametrize(("language", "station"), BOTH)
def test_a_language_has_the_keys_of_english_and_no_others(language: str, station: str) -> None:
    english, other = texts(read(DEFAULT, station)), texts(read(language, station))
    assert other.keys() - english.keys() == set(), "unused"
    assert english.keys() - other.keys() == set(), "missing"
    assert {key for key, text in other.items() if bool(text) != bool(english[key])} == set(), "empty, or not"


@pytest.mark.parametrize(("language", "station"), BOTH)
def test_the_places_for_values_are_those_of_english(language: str, station: str) -> None:
    english, other = texts(read(DEFAULT, station)), texts(read(language, station))
    wrong = {key for key in english.keys() & other.keys() if set(places(english[key])) != set(places(other[key]))}
    # A plural of English may be told without its number elsewhere, never the other way round.
    assert wrong == set()


@pytest.mark.parametrize(("language", "station"), BOTH)
def test_paragraphs_and_marks_of_markdown_are_kept(language: str, station: str) -> None:
    english, other = read(DEFAULT, station), read(language, station)
    assert other.intro.count("\n\n") == english.intro.count("\n\n")
    assert other.intro.count("`") == english.intro.count("`")


CHINESE = [(station, key, text) for station in STATIONS for key, text in texts(read("zh", station)).items() if text]


def names(text: str) -> set[str]:
    """The Latin words of a text, without its places, in the singular."""
    said = " ".join(literal for literal, *_ in Formatter().parse(text))
    return {word.lower().removesuffix("s") for word in re.findall(r"[A-Za-z]{2,}", said)}


def test_a_text_without_chinese_holds_names_and_signs_of_english() -> None:
    suspicious = []
    for station, key, text in CHINESE:
        if not re.search(HAN, text):
            english = texts(read(DEFAULT, station))[key]
            if not names(text) <= names(english) or len(names(text)) > 3:
                suspicious.append(f"{station}/{key}: {text}")
    assert suspicious == []


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        (rf"{HAN}[,;:!?]|[,;:!?]\s*{HAN}", "a half-width mark beside a Chinese character"),
        (rf"{HAN}\.(?!\w)", "a full stop of English after a Chinese character"),
        (rf"{HAN}\s+{HAN}", "a space between Chinese characters"),
        (rf"[，。；：！？、”（）] +|“ +{HAN}", "a space after a Chinese mark"),
        (r" [，。；：！？、）]", "a space before a Chinese mark"),
        (rf"(?<![√·] )\([^()+−÷]*{HAN}[^()+−÷]*\)", "half-width brackets around Chinese, in no formula"),
        (rf"\"[^\"]*{HAN}[^\"]*\"", "straight quotes around Chinese"),
        (rf"{HAN}[A-Za-z0-9]|[A-Za-z0-9]{HAN}", "Latin letters or digits without a space beside Chinese"),
    ],
)
def test_chinese_typography(pattern: str, what: str) -> None:
    wrong = [
        f"{station}/{key}: {found.group()!r} in {text[:60]}"
        for station, key, text in CHINESE
        for found in re.finditer(pattern, text)
    ]
    assert wrong == [], what
