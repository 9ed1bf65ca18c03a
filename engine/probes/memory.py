"""Where the loaded model comes from, the memory it needs in each kind of numbers, and what is there."""

from engine.answers.memory import Memory, Need
from engine.catalog import EmbeddedSource, Entry, FolderSource, HubSource
from engine.conversation import Conversation
from engine.loading.memory import needed_bytes, shown, weight_bytes
from engine.loading.room import free_on


def memory(conversation: Conversation) -> Memory:
    """No forward; what is free is asked anew each time."""
    loaded = conversation.loaded
    entry = loaded.entry
    source, revision = _source(entry)
    kind = "4bit" if getattr(loaded.model, "is_loaded_in_4bit", False) else loaded.facts.dtype
    taken = sum(parameter.nbytes for parameter in loaded.model.parameters() if parameter.device.type != "meta")
    return Memory(
        licence=entry.licence if entry else None,
        source=source,
        revision=revision,
        stored=entry.weight_bytes if entry else None,
        device=loaded.facts.device,
        kind=kind,
        loaded=taken,
        free=free_on(loaded.device) + taken,
        needs=tuple(Need(one, weight_bytes(loaded.facts, one), needed_bytes(loaded.facts, one)) for one in shown(kind)),
    )


def _source(entry: Entry | None) -> tuple[str | None, str | None]:
    """What is said of where the weights come from. A folder of the operator's machine is not named to visitors."""
    match entry.source if entry else None:
        case EmbeddedSource() as source:
            return f"{source.package} {source.version}", source.sha256
        case HubSource() as source:
            return source.repo, source.revision
        case FolderSource() as source:
            return source.folder.name, None
    return None, None
