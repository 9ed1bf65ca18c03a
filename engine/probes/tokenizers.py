"""The same text under the tokenizers of the catalogue that are at hand. Nothing is downloaded for it."""

from collections.abc import Callable

from transformers import AutoTokenizer

from engine.answers.tokenizers import Counted, Missing, Tokenizers
from engine.catalog import EmbeddedSource, Entry, HubSource, load_catalog
from engine.conversation import Conversation
from engine.embedded import folder_of, is_intact
from engine.experiment import replace_lone_surrogates
from engine.loading.hub import is_whole, own_folder
from engine.model import LoadedModel
from engine.ranks import load_ranks

#: Characters of a text that are counted.
MAX_TEXT = 20_000

Encode = Callable[[str], list[int]]

_FOUND: dict[Entry, Encode] = {}


def tokenizers(conversation: Conversation, *, text: str | None = None) -> Tokenizers:
    """Count the tokens of the first `MAX_TEXT` characters of `text`, or of the newest user message.

    A control mark typed in the text may be one token here: it is counted as each tokenizer sees it.
    """
    if text is None:
        text = _newest_question(conversation)
    text = replace_lone_surrogates(text)[:MAX_TEXT]
    loaded = conversation.loaded
    own = Counted(loaded.facts.model_id, loaded.facts.title, loaded.facts.vocab_rows, len(_own(loaded)(text)))
    others = [entry for entry in load_catalog().models if entry.id != loaded.facts.model_id]
    rows = (own, *(_counted(entry, text) for entry in others))
    return Tokenizers(text, len(text), len(text.encode()), rows)


def _newest_question(conversation: Conversation) -> str:
    experiment = conversation.experiment
    asked = [message.content for message in experiment.messages or () if message.role == "user"]
    return [experiment.prompt or "", *asked, *experiment.follow_ups][-1]


def _own(loaded: LoadedModel) -> Encode:
    return lambda text: list(loaded.tokenizer.encode(text, add_special_tokens=False))


def _counted(entry: Entry, text: str) -> Counted:
    found = at_hand(entry)
    if isinstance(found, str):
        return Counted(entry.id, entry.title, entry.vocab_rows, None, found)
    return Counted(entry.id, entry.title, entry.vocab_rows, len(found(text)))


def at_hand(entry: Entry) -> Encode | Missing:
    """The tokenizer of a catalogue's model where this machine has it, else why not; only what was found is kept."""
    if entry not in _FOUND:
        found = _look_for(entry)
        if isinstance(found, str):
            return found
        _FOUND[entry] = found
    return _FOUND[entry]


def _look_for(entry: Entry) -> Encode | Missing:
    if entry.ranks is not None and (ranks := load_ranks(entry.ranks)) is not None:
        return ranks.encode
    match entry.source:
        case EmbeddedSource() as source:
            folder = folder_of(source)
            return _from(str(folder), None) or "not_here" if is_intact(folder) else "not_converted"
        case HubSource() as source:
            folder = own_folder(source)
            ours = _from(str(folder), None) if is_whole(folder) else None
            return ours or _from(source.repo, source.revision) or "not_here"
    return "shape_only"


def _from(name: str, revision: str | None) -> Encode | None:
    """A tokenizer from files that are here already."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            name, revision=revision, local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError):  # no files, or not all of them
        return None
    return lambda text: list(tokenizer.encode(text, add_special_tokens=False))
