"""A run in one file: its trace and what probes gave about it, shown again where no model and no torch is.

The file is gzip of JSON: {"format", "version", "made_by", "trace", "answers": [{"probe", "arguments", "result"}]}, with
"refused" in the place of "result" where the probe gave a reason: a sentence, told by its key and its values.
Numbers come back as they were, bit for bit. A file may come from anybody: it is bounded before it is read, and each
value is of the kind that its place wants, or the file is refused with the reason.
"""

import gzip
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.answers.refusal import Refusal
from engine.answers.table import ANSWERS
from engine.exact_json import EXACT
from engine.experiment import ExperimentError, parse_experiment
from engine.facts import ModelFacts
from engine.record_check import check_answer
from engine.said import Sentence, said
from engine.trace import Trace
from engine.trace_check import check_whole
from engine.trace_json import happened, parts_to_json

FORMAT = "decodescope record"
VERSION = 1
MADE_BY = "Decodescope 0.1.0"

#: Bytes of a file, and of the JSON inside it.
MAX_FILE_BYTES = 8_000_000
MAX_JSON_BYTES = 64_000_000
#: Commas and opening brackets in the JSON: about as many values, each of which takes memory.
MAX_VALUES = 2_000_000
MAX_ANSWERS = 20_000


@dataclass(frozen=True, eq=False)
class Answered:
    """What the probe of that name gave when asked with these arguments: its dataclass, or a `Refusal`."""

    probe: str
    arguments: dict[str, Any]
    result: Any

    @property
    def key(self) -> str:
        """The probe and its arguments as one text: equal where the same was asked."""
        return question(self.probe, self.arguments)


@dataclass(frozen=True, eq=False)
class Record:
    """A trace and answers about it. `made_by` names the program that wrote it."""

    trace: Trace
    answers: tuple[Answered, ...] = field(default=())
    made_by: str = MADE_BY

    @property
    def facts(self) -> ModelFacts:
        """Of the model that ran."""
        return self.trace.facts


def question(probe: str, arguments: Mapping[str, Any]) -> str:
    """A probe and its arguments as one text; an argument that is None is the same as one that is not given."""
    given = {name: value for name, value in arguments.items() if value is not None}
    return f"{probe} {json.dumps(EXACT.encode(given), sort_keys=True, ensure_ascii=False)}"


def record_to_bytes(record: Record) -> bytes:
    """The file; the same record gives the same bytes."""
    data = {
        "format": FORMAT,
        "version": VERSION,
        "made_by": record.made_by,
        "trace": parts_to_json(record.trace, EXACT),
        "answers": [
            {"probe": one.probe, "arguments": EXACT.encode(one.arguments), **_result(one.result)}
            for one in record.answers
        ],
    }
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return gzip.compress(text.encode("utf-8"), mtime=0)


def _result(result: Any) -> dict[str, Any]:
    refused = isinstance(result, Refusal)
    return {"refused": EXACT.encode(result.reason)} if refused else {"result": EXACT.encode(result)}


def record_from_bytes(data: bytes) -> Record:
    """The record in a file. Raises `ExperimentError`, in one line, for whatever is no record or not all of one."""
    content = _json(_inflated(data))
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ExperimentError("", said("no_record"))
    if type(content.get("version")) is not int or content["version"] != VERSION:
        found = str(content.get("version"))[:20]
        raise ExperimentError("version", said("record_version", found=found, known=VERSION))
    _only(content, {"format", "version", "made_by", "trace", "answers"}, "")
    made_by = EXACT.decode(str, content["made_by"], "made_by")[:200]
    trace = _trace(content["trace"])
    listed = content["answers"]
    if not isinstance(listed, list) or len(listed) > MAX_ANSWERS:
        raise ExperimentError("answers", said("answers_at_most", most=MAX_ANSWERS))
    answers = tuple(_answered(item, trace, f"answers[{index}]") for index, item in enumerate(listed))
    return Record(trace, answers, made_by)


def _inflated(data: bytes) -> bytes:
    if len(data) > MAX_FILE_BYTES:
        raise ExperimentError("", said("record_bytes", most=MAX_FILE_BYTES, count=len(data)))
    reader = zlib.decompressobj(wbits=31)  # gzip
    try:
        text = reader.decompress(data, MAX_JSON_BYTES + 1)
    except zlib.error:
        raise ExperimentError("", said("no_record_or_damaged")) from None
    if len(text) > MAX_JSON_BYTES:
        raise ExperimentError("", said("record_inflates", most=MAX_JSON_BYTES))
    if not reader.eof:
        raise ExperimentError("", said("file_breaks_off"))
    if reader.unused_data:
        raise ExperimentError("", said("something_follows"))
    return text


def _json(text: bytes) -> Any:
    if sum(map(text.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise ExperimentError("", said("record_values", most=MAX_VALUES))
    try:
        return json.loads(text.decode("utf-8"), parse_constant=_no_number, object_pairs_hook=_object)
    except UnicodeDecodeError:
        raise ExperimentError("", said("record_utf8")) from None
    except RecursionError:
        raise ExperimentError("", said("record_nested")) from None
    except ExperimentError:
        raise
    except ValueError as error:
        raise ExperimentError("", said("record_json", error=str(error)[:100])) from None


def _no_number(name: str) -> Any:
    raise ExperimentError("", said("no_json_number", name=name))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ExperimentError("", said("name_twice"))
    return found


def _trace(data: Any) -> Trace:
    if not isinstance(data, dict):
        raise ExperimentError("trace", said("wanted", wanted=said("an_object")))
    _only(data, {"experiment", "facts", "versions", "events"}, "trace")
    facts = EXACT.decode(ModelFacts, data["facts"], "trace.facts")
    asked = data["experiment"]
    named = asked.get("tools") if isinstance(asked, dict) else None
    # Nothing of a record is run: its model and its tools need not be known here.
    tools = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
    try:
        trace = Trace(
            experiment=parse_experiment(asked, models=[facts.model_id], tools=tools),
            facts=facts,
            **happened(data, EXACT),
        )
        check_whole(trace)
    except ExperimentError as error:
        raise ExperimentError(f"trace.{error.path}".rstrip("."), error.message) from None
    return trace


def _answered(data: Any, trace: Trace, path: str) -> Answered:
    if not isinstance(data, dict):
        raise ExperimentError(path, said("wanted", wanted=said("an_object")))
    _only(data, {"probe", "arguments", "refused" if "refused" in data else "result"}, path)
    probe = data["probe"]
    if not isinstance(probe, str) or probe not in ANSWERS:
        raise ExperimentError(f"{path}.probe", said("unknown_probe", name=str(probe)[:60], known=", ".join(ANSWERS)))
    arguments = EXACT.decode(dict[str, Any], data["arguments"], f"{path}.arguments")
    if "refused" in data:
        return Answered(probe, arguments, Refusal(EXACT.decode(Sentence, data["refused"], f"{path}.refused")))
    result = EXACT.decode(ANSWERS[probe], data["result"], f"{path}.result")
    check_answer(arguments, result, trace, path)
    return Answered(probe, arguments, result)


def _only(data: dict[str, Any], names: set[str], path: str) -> None:
    """Raise `ExperimentError` where an object has not these fields, or has others."""
    missing, unknown = sorted(names - set(data)), sorted(set(data) - names)
    if missing:
        raise ExperimentError(f"{path}.{missing[0]}".lstrip("."), said("missing_field"))
    if unknown:
        raise ExperimentError(f"{path}.{unknown[0][:60]}".lstrip("."), said("unknown_field"))
