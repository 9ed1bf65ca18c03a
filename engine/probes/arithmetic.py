"""Vector arithmetic with embedding rows: a − b + c, and which tokens lie where it leads.

After Mikolov, Yih and Zweig 2013, "Linguistic Regularities in Continuous Space Word Representations" (NAACL), with
the rows of a language model as they are, where the paper brings its word vectors to length 1 first.
"""

import re

import numpy as np
import torch

from engine.anatomy import anatomy
from engine.answers.arithmetic import Arithmetic, Term
from engine.conversation import Conversation
from engine.experiment import ExperimentError, replace_lone_surrogates
from engine.probes.embedding_table import nearest, row_cosines, row_norms, table_of
from engine.said import said
from engine.stages.vocabulary import Vocabulary, vocabulary
from engine.trace import Floats

MAX_CHARACTERS = 200
MAX_TERMS = 6
RESULTS = 10

_SIGNS = re.compile(r"\s*([+\-−–])\s*")


def arithmetic(conversation: Conversation, *, formula: str, count: int = RESULTS) -> Arithmetic:
    """Add and take away the rows of single tokens; "king - man + woman" is three of them.

    Each word is taken with a space before it, as it stands inside a text, where that is one token, else without.
    Raises `ExperimentError` for a formula that cannot be read, and for a word that is no single token: the sum of its
    pieces' rows would mean nothing.
    """
    if not 1 <= count <= 100:
        raise ExperimentError("count", said("results_range", count=count))
    words = vocabulary(conversation.loaded.tokenizer)
    signs, ids = zip(*((sign, _token(conversation, words, word)) for sign, word in parse_formula(formula)), strict=True)
    embedding = anatomy(conversation.loaded.model).embedding
    with torch.inference_mode():
        rows = table_of(embedding)[list(ids)].float()
        total = (rows * torch.tensor(signs, dtype=torch.float32, device=rows.device)[:, None]).sum(dim=0)
        cosines = row_cosines(embedding, torch.cat([total[None], rows]))
    near = nearest(cosines[0], count, leave_out=ids)
    norms = row_norms(embedding)
    return Arithmetic(
        formula=formula,
        terms=tuple(
            Term(sign, token_id, words.bytes(token_id), float(norms[token_id]), *_place(cosines[0], token_id))
            for sign, token_id in zip(signs, ids, strict=True)
        ),
        norm=float(total.norm()),
        token_ids=near.ids,
        token_bytes=tuple(words.bytes(token_id) for token_id in near.ids.tolist()),
        cosines=near.cosines,
        near_terms=np.array(
            [
                [_neighbour(own, token_id, row) for own, token_id in zip(cosines[1:], ids, strict=True)]
                for row in near.ids.tolist()
            ],
            np.int32,
        ).reshape(len(near.ids), len(ids)),
    )


def parse_formula(formula: str) -> list[tuple[int, str]]:
    """Signs and words of "a - b + c", at most `MAX_TERMS`. Raises `ExperimentError`."""
    if len(formula) > MAX_CHARACTERS:
        raise ExperimentError("formula", said("formula_too_long", most=MAX_CHARACTERS, count=len(formula)))
    first, *rest = _SIGNS.split(replace_lone_surrogates(formula).strip())
    parts = list(zip(rest[::2], rest[1::2], strict=True))
    if first:  # "- a + b" begins with its sign
        parts.insert(0, ("+", first))
    if not parts or not all(word for _, word in parts):
        raise ExperimentError("formula", said("formula_wanted"))
    if len(parts) > MAX_TERMS:
        raise ExperimentError("formula", said("formula_words", most=MAX_TERMS, count=len(parts)))
    return [(1 if sign == "+" else -1, word) for sign, word in parts]


def _token(conversation: Conversation, words: Vocabulary, word: str) -> int:
    found = words.find(f" {word}")
    if found:
        return found[0]
    pieces = conversation.loaded.tokenizer.encode(f" {word}", add_special_tokens=False)
    cut = " | ".join(repr(words.bytes(piece).decode("utf-8", "replace")) for piece in pieces[:8])
    raise ExperimentError("formula", said("no_single_token", word=word, cut=cut))


def _place(cosines: Floats, token_id: int) -> tuple[float, int]:
    """The cosine of a row and its rank; a row without a direction has neither."""
    own = float(cosines[token_id])
    return (own, int(np.sum(cosines > own)) + 1) if np.isfinite(own) else (0.0, 0)


def _neighbour(cosines: Floats, token_id: int, row: int) -> int:
    """The place of `row` among the neighbours of `token_id`, whose cosines with all rows are given; 0 for none."""
    if np.isnan(cosines[row]):
        return 0
    return int(np.sum(cosines > cosines[row])) + 1 - int(cosines[token_id] > cosines[row])
