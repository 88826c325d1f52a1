"""The rebuilt tokenizer splits and joins text as SmolLM2's own, checked against an independent byte-level BPE."""

from __future__ import annotations

import itertools
import json
from functools import lru_cache
from pathlib import Path

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from mlx_lm.tokenizer_utils import BPEStreamingDetokenizer
from mlx_lm.utils import load, load_tokenizer

from engine.models import ResolvedPair
from engine.models.gguf_import import import_gguf
from tests.engine.models import tiny_gguf

GPT2 = regex.compile(r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
TEXTS = [
    "Hello world",
    "In 2024, 12345 apples cost $1,099.50!",
    "def f(x):\n    if x > 10:\n\treturn x**2  # twice  the\n\n\n",
    "it's we'll I'M they're don't",
    " leading and trailing  ",
    "naïve café 你好，世界 Привет مرحبا ½ ² Ⅷ ٣٤",
    "🙂👍🏽 👩‍👩‍👧 e\u0301 \u200b\ufeff",
    "\x00\x01\r\n\x7f",
    "",
]


class Reference:
    """Byte-level BPE by the book, over the merges and vocabulary of a tokenizer.json."""

    def __init__(self, path: Path):
        model = json.loads(path.read_text(encoding="utf-8"))["model"]
        self.ids = model["vocab"]
        self.ranks = {tuple(pair): rank for rank, pair in enumerate(model["merges"])}
        printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = [byte for byte in range(256) if byte not in printable]
        self.letters = {byte: chr(byte) for byte in printable}
        self.letters |= {byte: chr(256 + index) for index, byte in enumerate(others)}
        self.word = lru_cache(maxsize=None)(self._word)

    def encode(self, text: str) -> list[int]:
        pieces = [piece for piece in regex.split(r"(\p{N})", text) if piece]
        words = (word for piece in pieces for word in GPT2.findall(piece))
        return [token for word in words for token in self.word(word)]

    def _word(self, word: str) -> list[int]:
        # A byte that the vocabulary lacks is dropped, as the published tokenizer does (it has no unknown token).
        parts = [letter for letter in (self.letters[byte] for byte in word.encode("utf-8")) if letter in self.ids]
        while len(parts) > 1:
            pairs = list(itertools.pairwise(parts))
            best = min(pairs, key=lambda pair: self.ranks.get(pair, 1 << 30))
            if best not in self.ranks:
                break
            index, joined = 0, []
            while index < len(parts):
                hit = tuple(parts[index : index + 2]) == best
                joined.append("".join(best) if hit else parts[index])
                index += 2 if hit else 1
            parts = joined
        return [self.ids[part] for part in parts]


@pytest.fixture(scope="module")
def tokenizer(starter: ResolvedPair):
    return load_tokenizer(starter.target)


@pytest.fixture(scope="module")
def reference(starter: ResolvedPair) -> Reference:
    return Reference(starter.target / "tokenizer.json")


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_text_is_encoded_as_by_the_book_and_decodes_to_itself(tokenizer, reference: Reference, text: str) -> None:
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert ids == reference.encode(text)
    assert tokenizer.decode(ids) == text


def test_any_text_is_encoded_as_by_the_book(tokenizer, reference: Reference) -> None:
    # ASCII with many spaces, digits and quotes meets the splitting rules far more often than all of Unicode does.
    dense = st.text(st.sampled_from(" \n\t'sdmtlvre019aAZ.,-_½²é你🙂\u0301"), max_size=40)

    @settings(max_examples=300, deadline=None)
    @given(dense | st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
    def check(text: str) -> None:
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert ids == reference.encode(text)
        if all(reference.letters[byte] in reference.ids for byte in text.encode("utf-8")):
            assert tokenizer.decode(ids) == text

    check()


def test_known_ids_of_the_published_tokenizer(tokenizer) -> None:
    assert tokenizer.encode("Hello world") == [19556, 905]
    assert tokenizer.encode("42") == [36, 34]  # each digit alone
    assert tokenizer.encode("<|im_start|>user<|im_end|>\n") == [1, 4093, 2, 198]


def test_special_tokens_are_those_of_the_file(tokenizer) -> None:
    assert (tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token) == (
        "<|im_start|>",
        "<|im_end|>",
        "<|im_end|>",
    )
    assert (tokenizer.unk_token, tokenizer.eos_token_ids) == ("<|endoftext|>", {2})
    assert tokenizer.decode([1, 19556, 2], skip_special_tokens=True) == "Hello"
    assert isinstance(tokenizer.detokenizer, BPEStreamingDetokenizer)


def test_a_chat_is_laid_out_by_the_template_of_the_file(tokenizer) -> None:
    turns = [("user", "Hi"), ("assistant", "Hello!"), ("user", "Bye")]
    messages = [{"role": role, "content": text} for role, text in turns]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert text == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_a_file_that_wants_its_first_token_gets_it(tmp_path: Path) -> None:
    source = tiny_gguf.write_gguf(tmp_path / "m.gguf", tokenizer__ggml__add_bos_token=True)
    tokenizer = load_tokenizer(import_gguf(source, tmp_path / "out"))
    assert [tokenizer.decode([token]) for token in tokenizer.encode("hello w")] == ["<|im_start|>", "hello", " w"]
    assert tokenizer.encode("hello", add_special_tokens=False) == tokenizer.encode("hello")[1:]


@pytest.mark.parametrize(("rule", "pieces"), [("smollm", 4), ("gpt-2", 4), ("llama-bpe", 4)])
def test_each_splitting_rule_keeps_every_byte(tmp_path: Path, rule: str, pieces: int) -> None:
    source = tiny_gguf.write_gguf(tmp_path / "m.gguf", tokenizer__ggml__pre=rule)
    tokenizer = load_tokenizer(import_gguf(source, tmp_path / "out"))
    text = "hello w1234 é\n\n  🙂"
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert len(tokenizer.encode("1234")) == pieces


def test_two_ends_of_a_turn_are_both_kept(tmp_path: Path) -> None:
    source = tiny_gguf.write_gguf(tmp_path / "m.gguf", tokenizer__ggml__eot_token_id=0)
    folder = import_gguf(source, tmp_path / "out")
    for name in ("config.json", "generation_config.json"):
        assert json.loads((folder / name).read_text())["eos_token_id"] == [2, 0]
    assert load(str(folder))[1].eos_token_ids == {0, 2}
