"""From a chat to prompt tokens, and the tokens that end an answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlx_lm.tokenizer_utils import TokenizerWrapper
from mlx_lm.utils import load_tokenizer
from tokenizers.processors import TemplateProcessing

from engine.errors import ModelError
from engine.models import ResolvedPair
from engine.request import Message
from engine.text.chat import encode_chat, stop_token_ids
from tests.engine.text.metaspace import metaspace_tokenizer


@pytest.fixture(scope="module")
def tokenizer(starter: ResolvedPair) -> Any:
    return load_tokenizer(starter.target)


@pytest.fixture
def other(starter: ResolvedPair) -> Any:
    """The same tokenizer again, to put another template into."""
    return load_tokenizer(starter.target)


def rendered(tokenizer: Any, *turns: tuple[str, str]) -> str:
    return tokenizer.decode(encode_chat(tokenizer, [Message(role, content) for role, content in turns]))  # type: ignore[arg-type]


def test_a_chat_follows_the_models_template_and_is_open_for_the_answer(tokenizer: Any) -> None:
    text = rendered(tokenizer, ("system", "Be brief."), ("user", "Hi"), ("assistant", "Hello"), ("user", "Bye 虹"))
    assert text == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
        "<|im_start|>assistant\nHello<|im_end|>\n<|im_start|>user\nBye 虹<|im_end|>\n<|im_start|>assistant\n"
    )


def test_the_templates_markers_are_single_tokens_and_none_is_added_twice(tokenizer: Any) -> None:
    ids = encode_chat(tokenizer, [Message("system", "x"), Message("user", "Hi")])
    start, end = (tokenizer.convert_tokens_to_ids(marker) for marker in ("<|im_start|>", "<|im_end|>"))
    assert (ids[0], ids.count(start), ids.count(end)) == (start, 3, 2)


def test_lone_surrogates_become_replacement_characters(tokenizer: Any) -> None:
    assert rendered(tokenizer, ("user", "a\ud800b\udfff\U0001f600")) == rendered(tokenizer, ("user", "a\ufffdb\ufffd\U0001f600"))


def test_control_characters_do_no_harm(tokenizer: Any) -> None:
    assert "a\x00b\x1b[31m\x7f\u202e\r\nc" in rendered(tokenizer, ("user", "a\x00b\x1b[31m\x7f\u202e\r\nc"))


@given(st.text(max_size=60))
@settings(max_examples=100, deadline=None)
def test_any_text_at_all_becomes_a_prompt(tokenizer: Any, text: str) -> None:
    ids = encode_chat(tokenizer, [Message("user", text)])
    assert ids and all(isinstance(token, int) and 0 <= token < 49152 for token in ids)


def test_a_model_without_a_template_gets_the_bare_text() -> None:
    plain = TokenizerWrapper(metaspace_tokenizer())
    assert not plain.has_chat_template
    ids = encode_chat(plain, [Message("system", "Hello"), Message("user", "the \ud800 world")])
    assert plain.decode(ids) == "Hello\nthe \ufffd world"


@pytest.mark.parametrize("template", ["{{ '<unk>' + messages[0].content }}", None])
def test_a_beginning_of_text_stands_once_whether_the_template_or_the_tokenizer_writes_it(template: str | None) -> None:
    plain = metaspace_tokenizer()
    plain.backend_tokenizer.post_processor = TemplateProcessing(single="<unk> $A", special_tokens=[("<unk>", 0)])
    plain.chat_template = template
    ids = encode_chat(TokenizerWrapper(plain), [Message("user", "Hello")])
    assert (ids[0], ids.count(0)) == (0, 1)


@pytest.mark.parametrize(
    "template",
    ["{{ raise_exception('only one system\nmessage') }}", "{% for %}", "{{ messages[7].content.nothing }}", "{{ 1 / 0 }}"],
    ids=["raises", "is no template", "misses a value", "divides by zero"],
)
def test_a_template_that_fails_gives_one_clear_error(other: Any, template: str) -> None:
    other.chat_template = template
    with pytest.raises(ModelError, match=r"chat template refused this chat.*start a new chat") as caught:
        encode_chat(other, [Message("user", "Hi")])
    assert "\n" not in str(caught.value)


def write(folder: Path, **files: Any) -> Path:
    for name, content in files.items():
        (folder / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder


def test_stop_tokens_are_the_union_of_all_three_places(tmp_path: Path, tokenizer: Any) -> None:
    own = tokenizer.eos_token_id
    write(tmp_path, config={"eos_token_id": 7}, generation_config={"eos_token_id": [8, 9]})
    assert stop_token_ids(tmp_path, tokenizer) == {own, 7, 8, 9}


@pytest.mark.parametrize(
    ("files", "more"),
    [
        ({}, set()),
        ({"config": {"eos_token_id": None}}, set()),
        ({"config": {}, "generation_config": {"eos_token_id": 0}}, {0}),
        ({"config": {"eos_token_id": [5, 6]}}, {5, 6}),
        ({"config": {"text_config": {"eos_token_id": 11}}}, {11}),
    ],
)
def test_stop_tokens_are_found_wherever_they_are(tmp_path: Path, tokenizer: Any, files: dict[str, Any], more: set[int]) -> None:
    assert stop_token_ids(write(tmp_path, **files), tokenizer) == {tokenizer.eos_token_id} | more


@pytest.mark.parametrize("content", ["{", "[1]", '{"eos_token_id": "</s>"}', '{"eos_token_id": [1, "x"]}', '{"eos_token_id": {}}'])
def test_damaged_stop_tokens_give_one_clear_error(tmp_path: Path, tokenizer: Any, content: str) -> None:
    with pytest.raises(ModelError, match=r"generation_config\.json cannot be read.*download the model again"):
        stop_token_ids(write(tmp_path, generation_config=content), tokenizer)


def test_the_starter_ends_on_its_own_end_of_turn(starter: ResolvedPair, tokenizer: Any) -> None:
    assert tokenizer.convert_tokens_to_ids("<|im_end|>") in stop_token_ids(starter.target, tokenizer)
