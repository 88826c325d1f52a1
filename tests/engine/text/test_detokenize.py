"""Streamed text is the text: no character is ever cut, lost, doubled or shown as U+FFFD because a token ended inside it."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mlx_lm.utils import load_tokenizer

from engine.models import ResolvedPair
from engine.text.detokenize import ByteDetokenizer, WindowDetokenizer, make_detokenizer, token_bytes
from tests.engine.text.metaspace import metaspace_tokenizer

NOTHING: frozenset[int] = frozenset()
# Written with escapes so that what they are made of can be seen.
HARD = {
    "family": "x \U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 y",
    "skin tones": "\U0001f44b\U0001f3fd\U0001f9d1\U0001f3ff\u200d\U0001f680",
    "flags": "\U0001f1e8\U0001f1ff\U0001f1ef\U0001f1f5\U0001f3f4\u200d\u2620\ufe0f",
    "Chinese": "彩虹是怎样形成的？",
    "Japanese": "虹はどうやってできますか。がぱ",
    "Korean": "무지개는 어떻게 생기나요",
    "Czech": "Příliš žluťoučký kůň úpěl ďábelské ódy",
    "combining": "e\u0301 n\u0303 a\u030a\u0323 \u0915\u094d\u0937\u093f",
    "right to left": "שָׁלוֹם \u202eמרחבא\u202c",
    "U+FFFD itself": "one \ufffd two \ufffd\ufffd\ufffd",
    "beyond the first plane": "\U00020000\U0001d54f\U000323af",
    "controls": "a\x00b\x1b[0m\r\n\tc\x7f\u0085",
    "spaces": "  two  \u00a0 spaces\u3000 \n\n   x ",
    "code": "def f(x):\n\treturn f'{x!r}'  # ok\n",
}
# Any text Python can hold but lone surrogates, which no tokenizer takes, and what the real vocabulary has no byte for: six
# control characters and the empty planes 4 to 15.
TEXTS = st.text(
    st.characters(max_codepoint=0x3FFFF, exclude_categories=["Cs"], exclude_characters="\x04\x06\x13\x14\x16\x1d"), max_size=40
)
PARTS = ["a", " the", "\u0301", "\u200d", "\U0001f468", "\U0001f1e8", "虹", "ž", "\ufffd", "\n", "▁", "<0x41>"]
MIXED = st.lists(st.sampled_from(PARTS), max_size=12)


@pytest.fixture(scope="module")
def tokenizer(starter: ResolvedPair) -> Any:
    """The real, byte-level tokenizer."""
    return load_tokenizer(starter.target)


@pytest.fixture(scope="module", params=["always", "never"])
def metaspace(request) -> Any:
    """A tokenizer of the sentencepiece kind, with and without a leading space."""
    return metaspace_tokenizer(request.param)


def stream(tokenizer: Any, ids: list[int]) -> list[str]:
    """What each token showed, and last what the end showed."""
    detokenizer = make_detokenizer(tokenizer, NOTHING)
    return [detokenizer.push(token) for token in ids] + [detokenizer.flush()]


def check_prefixes(shown: list[str], text: str) -> None:
    """At every moment the text shown so far is a beginning of the whole: nothing is taken back or mended later."""
    sofar = ""
    for part in shown:
        sofar += part
        assert text.startswith(sofar)
    assert sofar == text


def ids_of(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False))


@pytest.mark.parametrize("name", HARD)
def test_hard_texts_stream_back_exactly(tokenizer: Any, name: str) -> None:
    shown = stream(tokenizer, ids_of(tokenizer, HARD[name]))
    check_prefixes(shown, HARD[name])
    assert shown[-1] == "", "a whole text leaves nothing for the end"


@given(TEXTS | MIXED.map("".join))
@settings(max_examples=300, deadline=None)
def test_any_text_streams_back_exactly(tokenizer: Any, text: str) -> None:
    check_prefixes(stream(tokenizer, ids_of(tokenizer, text)), text)


@given(st.text(st.sampled_from("虹ž👨e\u0301"), min_size=1, max_size=12))
@settings(max_examples=100, deadline=None)
def test_a_character_shows_with_the_token_that_completes_it(tokenizer: Any, text: str) -> None:
    ids, sofar = ids_of(tokenizer, text), ""
    detokenizer = make_detokenizer(tokenizer, NOTHING)
    for count, token in enumerate(ids, 1):
        sofar += detokenizer.push(token)
        assert sofar == tokenizer.decode(ids[:count], clean_up_tokenization_spaces=False).rstrip("\ufffd")


@given(st.lists(st.integers(0, 49151), max_size=24))
@settings(max_examples=300, deadline=None)
def test_any_tokens_give_the_text_of_their_bytes(tokenizer: Any, ids: list[int]) -> None:
    """A model may produce any tokens in any order, invalid UTF-8 among them."""
    shown = stream(tokenizer, ids)
    assert "".join(shown) == tokenizer.decode(ids, clean_up_tokenization_spaces=False)


@given(st.binary(max_size=24))
@example(b"\xf0\x9f\x98")
@example(b"\xff\xfe\x80\x80ok")
@example(b"\xc3(\xe2\x82")
@settings(max_examples=200, deadline=None)
def test_raw_bytes_become_replacement_characters_and_never_hang(tokenizer: Any, data: bytes) -> None:
    one_byte = {value[0]: token for token, value in byte_values(tokenizer).items() if len(value) == 1}
    shown = stream(tokenizer, [one_byte[byte] for byte in data if byte in one_byte])
    assert "".join(shown) == bytes(byte for byte in data if byte in one_byte).decode("utf-8", "replace")
    assert longest_silence(shown[:-1]) <= 3


def byte_values(tokenizer: Any) -> dict[int, bytes]:
    detokenizer = make_detokenizer(tokenizer, NOTHING)
    assert isinstance(detokenizer, ByteDetokenizer)
    return detokenizer._table


def longest_silence(shown: list[str]) -> int:
    """Most tokens in a row that showed nothing."""
    return max((len(list(run)) for silent, run in groupby(shown, key=lambda part: part == "") if silent), default=0)


def test_every_token_of_the_vocabulary_has_its_bytes(tokenizer: Any) -> None:
    values = byte_values(tokenizer)
    assert values.keys() == set(tokenizer.get_vocab().values())
    assert {value for value in values.values() if len(value) == 1} >= {bytes([byte]) for byte in range(0x20, 0x7F)}


def test_hidden_tokens_do_not_show_and_do_not_cut_a_character(tokenizer: Any) -> None:
    end = tokenizer.eos_token_id
    ids = ids_of(tokenizer, "a 虹")
    for place in range(len(ids) + 1):
        detokenizer = make_detokenizer(tokenizer, frozenset({end}))
        shown = [detokenizer.push(token) for token in [*ids[:place], end, *ids[place:]]]
        assert "".join(shown) == "a 虹" and detokenizer.flush() == ""


def test_special_tokens_that_are_not_hidden_show_as_written(tokenizer: Any) -> None:
    end = tokenizer.eos_token_id
    assert "".join(stream(tokenizer, [end, *ids_of(tokenizer, " x"), end])) == "<|im_end|> x<|im_end|>"


def test_added_tokens_are_spelled_as_they_are(starter: ResolvedPair) -> None:
    """The letter é stands for the byte E9 in the vocabulary proper, and for itself in an added token."""
    more = load_tokenizer(starter.target)
    assert more.add_tokens(["<é>", "Ġ!"]) == 2
    assert "".join(stream(more, more.convert_tokens_to_ids(["<é>", "Ġ!"]))) == "<é>Ġ!"


def test_the_end_shows_an_unfinished_character_once(tokenizer: Any) -> None:
    ids = ids_of(tokenizer, "虹")
    detokenizer = make_detokenizer(tokenizer, NOTHING)
    assert [detokenizer.push(token) for token in ids[:-1]] == [""] * (len(ids) - 1)
    assert (detokenizer.flush(), detokenizer.flush()) == ("\ufffd", "")


def test_of_an_answer_that_was_cut_the_end_leaves_out_an_unfinished_character_and_nothing_else(tokenizer: Any) -> None:
    """It may be gone on with: then U+FFFD would stand in the text for ever."""
    for text in ("a 虹", "💡💡", "ok"):
        ids = ids_of(tokenizer, text)
        for count in range(len(ids) + 1):
            whole = tokenizer.decode(ids[:count], clean_up_tokenization_spaces=False)
            for detokenizer in (make_detokenizer(tokenizer, NOTHING), WindowDetokenizer(tokenizer, NOTHING, {})):
                shown = "".join(detokenizer.push(token) for token in ids[:count])
                assert (shown + detokenizer.flush(cut=True), detokenizer.flush(cut=True)) == (whole.rstrip("\ufffd"), "")


@pytest.mark.parametrize(("cut", "end"), [(False, "\ufffd"), (True, "")])
def test_bytes_of_a_window_tokenizer_that_are_no_character_are_left_out_where_the_answer_was_cut(
    metaspace: Any, cut: bool, end: str
) -> None:
    detokenizer = make_detokenizer(metaspace, NOTHING)
    shown = "".join(map(detokenizer.push, metaspace.convert_tokens_to_ids(["\ufffd", "<0xF0>", "<0x9F>"])))
    assert shown + detokenizer.flush(cut) == "\ufffd" + end


def test_the_vocabulary_is_read_once_for_a_tokenizer_not_for_every_answer() -> None:
    class Counted(type(metaspace_tokenizer())):
        reads = 0

        def get_vocab(self) -> dict[str, int]:
            Counted.reads += 1
            return super().get_vocab()

    counted = Counted(tokenizer_object=metaspace_tokenizer().backend_tokenizer)
    make_detokenizer(counted, NOTHING)
    first = Counted.reads
    make_detokenizer(counted, NOTHING)
    assert (first > 0, Counted.reads) == (True, first)


@pytest.mark.parametrize("name", HARD)
def test_hard_texts_stream_as_the_window_tokenizer_decodes_them(metaspace: Any, name: str) -> None:
    assert isinstance(make_detokenizer(metaspace, NOTHING), WindowDetokenizer)
    ids = ids_of(metaspace, HARD[name])
    check_prefixes(stream(metaspace, ids), metaspace.decode(ids, clean_up_tokenization_spaces=False))


@given(TEXTS | MIXED.map("".join))
@settings(max_examples=200, deadline=None)
def test_any_text_streams_as_the_window_tokenizer_decodes_it(metaspace: Any, text: str) -> None:
    ids = ids_of(metaspace, text)
    decoded = metaspace.decode(ids, clean_up_tokenization_spaces=False)
    check_prefixes(stream(metaspace, ids), decoded)
    assert "\ufffd" not in decoded or "\ufffd" in text


@given(st.lists(st.integers(1, 300), max_size=24))
@settings(max_examples=300, deadline=None)
def test_any_tokens_of_a_window_tokenizer_give_the_text_of_their_bytes(ids: list[int]) -> None:
    tokenizer = metaspace_tokenizer("never")
    names = tokenizer.convert_ids_to_tokens(ids)
    spelled = b"".join(bytes([int(name[3:5], 16)]) if name.startswith("<0x") else name.encode() for name in names)
    shown = stream(tokenizer, ids)
    assert "".join(shown) == spelled.decode("utf-8", "replace").replace("▁", " ")
    assert longest_silence(shown[:-1]) <= 3


def test_hidden_tokens_of_a_window_tokenizer_do_not_show(metaspace: Any) -> None:
    hidden = metaspace.convert_tokens_to_ids("<unk>")
    detokenizer = make_detokenizer(metaspace, frozenset({hidden}))
    ids = ids_of(metaspace, "Hello 虹 world")
    shown = [detokenizer.push(token) for place in ids for token in (place, hidden)]
    assert "".join(shown) + detokenizer.flush() == metaspace.decode(ids)


def test_each_token_alone_spells_its_bytes_in_both_kinds_of_vocabulary(tokenizer: Any, metaspace: Any) -> None:
    """For log probabilities: what one token spells may be part of a character only."""
    table = token_bytes(tokenizer)
    for text in HARD.values():
        assert b"".join(table[token] for token in ids_of(tokenizer, text)).decode() == text
    spelled = b"".join(token_bytes(metaspace)[token] for token in ids_of(metaspace, "Hello the rainbow 虹 ž")).decode()
    assert spelled.removeprefix(" ") == "Hello the rainbow 虹 ž"
