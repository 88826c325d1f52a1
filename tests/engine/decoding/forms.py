"""Forms of answers over a tiny target's vocabulary, whose first tokens are the 256 bytes and whose others are padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llguidance import LLTokenizer, TokenizerWrapper

from engine.constraint import Constraint, json_schema
from engine.decoding.constraint import Guide
from engine.grammars import Grammars
from engine.request import GenerationRequest

END = 0
BYTES = 256
VOCAB = 300
THOUGHT_END = 1  # a token of its own, as models have it


class Tokens:
    """A vocabulary as the library reads it."""

    eos_token_id, bos_token_id = END, None
    tokens = (b"<end>", b"</think>", *(bytes([code]) for code in range(2, BYTES)))
    special_token_ids = (END, THOUGHT_END)

    def __call__(self, text: bytes) -> list[int]:
        return list(text)

    def convert_tokens_to_ids(self, token: str) -> int:
        return THOUGHT_END if token == "</think>" else END

    def convert_ids_to_tokens(self, token: int) -> str:
        return self.tokens[token].decode()


class Forms(Grammars):
    """Makes the places of answers in their forms, for that vocabulary."""

    def __init__(self) -> None:
        super().__init__(Tokens(), VOCAB, frozenset({END}))

    def _read_tokens(self, constraint: Constraint) -> LLTokenizer:
        return LLTokenizer(TokenizerWrapper(Tokens()), eos_token=END)

    def of(self, form: Constraint | dict[str, Any], open_tag: str = "") -> Guide:
        """A fresh place at the beginning of ``form``, a JSON schema or any other."""
        constraint = form if isinstance(form, Constraint) else json_schema(form)
        guide = self.guide(GenerationRequest.of("x", constraint=constraint), open_tag)
        assert guide is not None
        return guide


def closed(properties: dict[str, Any], required: Sequence[str] | None = None) -> dict[str, Any]:
    """The schema of an object with these keys only, of which ``required`` (None: all) are there."""
    keys = list(properties if required is None else required)
    return {"type": "object", "properties": properties, "required": keys, "additionalProperties": False}


def spelled(tokens: Sequence[int]) -> str:
    """The text of an answer, without the token that ended it."""
    return b"".join(Tokens.tokens[token] for token in tokens if token != END).decode(errors="replace")
