"""A small tokenizer of the sentencepiece kind: U+2581 for spaces, a few merged words, every other character as byte tokens.

U+FFFD is a token of its own, so that it can be told from a character cut in two.
"""

from __future__ import annotations

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

WORDS = ("▁the", "▁rain", "bow", "▁s", "un", "▁Hello", "▁world", "žlu", "ť")
LETTERS = "▁abcdehlnorstuwiHž.,!?0123456789\n�"
UNKNOWN = "<unk>"


def metaspace_tokenizer(prepend: str = "always") -> PreTrainedTokenizerFast:
    """``prepend`` "always": a leading space that decoding strips again, as Llama 2 has it; "never": none."""
    vocabulary = {UNKNOWN: 0}
    for byte in range(256):
        vocabulary[f"<0x{byte:02X}>"] = len(vocabulary)
    merges: list[tuple[str, str]] = []
    for character in dict.fromkeys(LETTERS + "".join(WORDS)):
        vocabulary[character] = len(vocabulary)
    for word in WORDS:
        for end in range(2, len(word) + 1):
            if word[:end] not in vocabulary:
                vocabulary[word[:end]] = len(vocabulary)
            if (word[: end - 1], word[end - 1]) not in merges:
                merges.append((word[: end - 1], word[end - 1]))
    backend = Tokenizer(models.BPE(vocabulary, merges, unk_token=UNKNOWN, byte_fallback=True, fuse_unk=True))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=prepend, split=False)
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    backend.decoder = decoders.Sequence(steps + ([decoders.Strip(" ", 1, 0)] if prepend == "always" else []))
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token=UNKNOWN)
