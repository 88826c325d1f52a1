"""Streaming detokenizer: text appears as soon as its bytes are complete, never as U+FFFD because a token ended mid-character."""

from __future__ import annotations

import codecs
import re
import weakref
from typing import Any, Protocol

SENTENCEPIECE_SPACE = "▁"


class Detokenizer(Protocol):
    """One answer's text. ``push`` returns what became readable; ``flush`` what is left at the end."""

    def push(self, token_id: int) -> str:
        """Text completed by this token, possibly empty."""

    def flush(self, cut: bool = False) -> str:
        """Bytes that never became a character, as U+FFFD; nothing of them where the answer was ``cut`` inside that character."""


def make_detokenizer(tokenizer: Any, hidden_ids: frozenset[int]) -> Detokenizer:
    """The exact byte decoder for a byte-level vocabulary, else a windowed one. ``hidden_ids`` never show (stop tokens)."""
    table, fallback = _tables(tokenizer)
    return ByteDetokenizer(table, hidden_ids) if table is not None else WindowDetokenizer(tokenizer, hidden_ids, fallback)


class ByteDetokenizer:
    """Each token is a byte string; an incremental UTF-8 decoder holds back only what is not yet a whole character."""

    def __init__(self, table: dict[int, bytes], hidden_ids: frozenset[int]):
        self._table, self._hidden = table, hidden_ids
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token_id: int) -> str:
        if token_id in self._hidden:
            return ""
        return self._decoder.decode(self._table.get(token_id, b""))

    def flush(self, cut: bool = False) -> str:
        left = self._decoder.decode(b"", final=True)
        return "" if cut else left


class WindowDetokenizer:
    """For other vocabularies: decodes a short window of tokens and gives out what the last one changed.

    ``fallback`` maps tokens that stand for one byte to it; runs of them are decoded as UTF-8, which the tokenizer's own decoder
    does only for whole runs: it would turn a good character into U+FFFD because of a later byte.
    """

    def __init__(self, tokenizer: Any, hidden_ids: frozenset[int], fallback: dict[int, int]):
        self._tokenizer, self._hidden, self._fallback = tokenizer, hidden_ids, fallback
        self._bytes = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._ids: list[int] = []
        self._shown = 0  # tokens whose text was given out, kept as context because a decoder may look at neighbours

    def push(self, token_id: int) -> str:
        if token_id in self._hidden:
            return ""
        byte = self._fallback.get(token_id)
        if byte is not None:
            text = self._rest() + self._bytes.decode(bytes([byte]))
            self._ids, self._shown = [token_id], 1
            return text
        ended = self._bytes.decode(b"", final=True)
        self._ids.append(token_id)
        before, now = self._decode(self._ids[: self._shown]), self._decode(self._ids)
        if now.endswith("�") and len(self._ids) - self._shown < 4:  # a character has at most four bytes
            return ended
        return ended + self._give_out(before, now)

    def flush(self, cut: bool = False) -> str:
        rest, left = self._rest(), self._bytes.decode(b"", final=True)
        if not cut:
            return rest + left
        return rest if self._fallback else rest.rstrip("�")  # where single bytes are tokens, every other token is whole characters

    def _rest(self) -> str:
        return self._give_out(self._decode(self._ids[: self._shown]), self._decode(self._ids))

    def _give_out(self, before: str, now: str) -> str:
        self._ids = self._ids[self._shown :]
        self._shown = len(self._ids)
        return now[len(before) :]

    def _decode(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids, clean_up_tokenization_spaces=False)


# Per tokenizer, because reading a whole vocabulary takes a tenth of a second and more: too long to do it for every answer.
_KNOWN: weakref.WeakKeyDictionary[Any, tuple[dict[int, bytes] | None, dict[int, int]]] = weakref.WeakKeyDictionary()


def _tables(tokenizer: Any) -> tuple[dict[int, bytes] | None, dict[int, int]]:
    if tokenizer not in _KNOWN:
        _KNOWN[tokenizer] = (byte_table(tokenizer), fallback_bytes(tokenizer))
    return _KNOWN[tokenizer]


def token_bytes(tokenizer: Any) -> dict[int, bytes]:
    """Token id to the bytes it stands for, alone."""
    table, fallback = _tables(tokenizer)
    if table is not None:
        return table
    added = tokenizer.added_tokens_decoder
    spelled = {
        token_id: (text if token_id in added else text.replace(SENTENCEPIECE_SPACE, " ")).encode(errors="replace")
        for text, token_id in tokenizer.get_vocab().items()
    }
    return spelled | {token_id: bytes([byte]) for token_id, byte in fallback.items()}


def fallback_bytes(tokenizer: Any) -> dict[int, int]:
    """Token id to byte of the tokens ``<0x00>`` to ``<0xFF>`` that sentencepiece vocabularies hold for unknown characters."""
    vocabulary = tokenizer.get_vocab().items()
    return {token_id: int(text[3:5], 16) for text, token_id in vocabulary if re.fullmatch("<0x[0-9A-F]{2}>", text)}


def byte_table(tokenizer: Any) -> dict[int, bytes] | None:
    """Token id to bytes for a byte-level BPE vocabulary (GPT-2's printable stand-ins for bytes), None for any other."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or type(backend.decoder).__name__ != "ByteLevel":
        return None
    stand_ins = _stand_ins()
    added = tokenizer.added_tokens_decoder  # these are spelled as they are, whatever their characters stand for elsewhere
    table = {}
    for text, token_id in tokenizer.get_vocab().items():
        if token_id not in added and all(character in stand_ins for character in text):
            table[token_id] = bytes(stand_ins[character] for character in text)
        else:
            table[token_id] = text.encode()
    return table


def _stand_ins() -> dict[str, int]:
    """GPT-2's map: printable Latin-1 bytes stand for themselves, the other 68 for U+0100 and up, in order."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + index): byte for index, byte in enumerate(hidden)}
