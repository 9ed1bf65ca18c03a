"""What each token id stands for: its piece, its exact bytes, whether it is special.

All of it is read from the tokenizer's own decoder, never from the model's name.
"""

import json
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from transformers import PreTrainedTokenizerFast

from engine.experiment import ExperimentError, replace_lone_surrogates
from engine.said import said

_SPACE = " "
_Bytes = bytes  # inside the class, `bytes` is the method


def _byte_alphabet() -> dict[str, int]:
    """The printable character that stands for each byte in byte-level BPE (GPT-2's `bytes_to_unicode`), inverted."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + rank): byte for rank, byte in enumerate(others)}


BYTE_OF_CHAR = _byte_alphabet()
CHAR_OF_BYTE = {byte: char for char, byte in BYTE_OF_CHAR.items()}


class Vocabulary:
    """Pieces and bytes of one tokenizer; each lookup is remembered, so 25 a step cost microseconds.

    Raises ValueError where the decoder does more than put bytes together (WordPiece and its kin add spaces by rules
    that look at neighbouring tokens): such text cannot be followed byte by byte.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self._backend = tokenizer.backend_tokenizer
        #: The added tokens by id, as `tokenizers.AddedToken`.
        self.added = self._backend.get_added_tokens_decoder()
        self._bytes: dict[int, _Bytes] = {}
        self._spaces: tuple[str, ...] = ()  # what stands for a space, where the vocabulary has no byte alphabet
        self.byte_level = False
        #: A run of byte tokens (<0xE2>) is text only as a whole: one bad byte spoils every byte of its run.
        self.byte_fallback = False
        #: Spaces that the decoder drops at the start of a text.
        self.leading_spaces_dropped = 0
        #: True where the decoder drops every space of the first token instead.
        self.first_token_spaces_dropped = False
        self._read_decoder()

    def piece(self, token_id: int) -> str:
        """The token as the vocabulary writes it; "" for a row of the embedding that no token owns."""
        return self._backend.id_to_token(token_id) or ""

    def is_special(self, token_id: int) -> bool:
        """True for a control token, which decoding with `skip_special_tokens` leaves out."""
        return token_id in self.added and self.added[token_id].special

    def special_in(self, texts: Sequence[str]) -> frozenset[int]:
        """The control tokens whose names stand in one of these texts."""
        return frozenset(
            token_id
            for token_id, token in self.added.items()
            if token.special and any(token.content in text for text in texts)
        )

    def is_byte(self, token_id: int) -> bool:
        """True for a token of a byte-fallback vocabulary that stands for one raw byte."""
        return self.byte_fallback and token_id not in self.added and _raw_byte(self.piece(token_id)) is not None

    def is_mark(self, token_id: int) -> bool:
        """True for an added token that steers: special, or one like <tool_call>. White space steers nothing."""
        return token_id in self.added and (self.added[token_id].special or not self.added[token_id].content.isspace())

    def bytes(self, token_id: int) -> _Bytes:
        """The exact UTF-8 bytes that the token stands for, perhaps part of a character; b"" for an unowned row."""
        found = self._bytes.get(token_id)
        if found is None:
            found = self._bytes[token_id] = self._work_out_bytes(token_id)
        return found

    def find(self, text: str) -> tuple[int, ...]:
        """Ids of the tokens that stand for exactly `text`, then those of it with a space put before or taken away."""
        if not text:
            return ()
        text = replace_lone_surrogates(text)
        other = text.removeprefix(_SPACE) if text.startswith(_SPACE) else _SPACE + text
        ids = [token_id for form in (text, other) if form for token_id in self._exactly(form)]
        return tuple(dict.fromkeys(ids))

    def _exactly(self, text: str) -> Iterator[int]:
        data = text.encode()
        forms = [text]
        if self.byte_level:
            forms.insert(0, "".join(CHAR_OF_BYTE[byte] for byte in data))
        forms[:0] = [text.replace(_SPACE, mark) for mark in self._spaces]
        if self.byte_fallback and len(data) == 1:
            forms.append(f"<0x{data[0]:02X}>")
        for form in forms:
            token_id = self._backend.token_to_id(form)
            if token_id is not None and self.bytes(token_id) == data:
                yield token_id

    def _work_out_bytes(self, token_id: int) -> _Bytes:
        piece = self.piece(token_id)
        if token_id in self.added:
            return piece.encode()
        if self.byte_level:
            # The library takes a piece with a character outside the alphabet as plain text.
            known = all(char in BYTE_OF_CHAR for char in piece)
            return bytes(BYTE_OF_CHAR[char] for char in piece) if known else piece.encode()
        if self.byte_fallback and (raw := _raw_byte(piece)) is not None:
            return bytes([raw])
        for mark in self._spaces:
            piece = piece.replace(mark, _SPACE)
        return piece.encode()

    def _read_decoder(self) -> None:
        decoder = self._backend.decoder
        state: dict[str, Any] = json.loads(decoder.__getstate__()) if decoder is not None else {"type": None}
        fused = False
        for part in state["decoders"] if state["type"] == "Sequence" else [state]:
            match part:
                case {"type": "ByteLevel"}:
                    self.byte_level = True
                case {"type": "ByteFallback"}:
                    self.byte_fallback = True
                case {"type": "Fuse"}:
                    fused = True
                case {"type": "Replace", "pattern": {"String": mark}, "content": " "}:
                    self._spaces += (mark,)
                case {"type": "Metaspace", "replacement": mark, "prepend_scheme": scheme}:
                    self._spaces += (mark,)
                    self.first_token_spaces_dropped = scheme != "never"
                case {"type": "Strip", "content": " ", "start": start, "stop": 0} if fused:
                    self.leading_spaces_dropped = start
                case _:
                    raise ExperimentError("model", said("tokenizer_unlike", part=str(part)[:80]))


def _raw_byte(piece: str) -> int | None:
    """The byte of a piece like <0xE2>, else None."""
    if len(piece) != 6 or not piece.startswith("<0x") or not piece.endswith(">"):
        return None
    try:
        return int(piece[3:5], 16)
    except ValueError:
        return None


_VOCABULARIES: "weakref.WeakKeyDictionary[PreTrainedTokenizerFast, Vocabulary]" = weakref.WeakKeyDictionary()


def vocabulary(tokenizer: PreTrainedTokenizerFast) -> Vocabulary:
    """The tokenizer's `Vocabulary`, made once and kept as long as the tokenizer lives."""
    found = _VOCABULARIES.get(tokenizer)
    if found is None:
        found = _VOCABULARIES[tokenizer] = Vocabulary(tokenizer)
    return found
