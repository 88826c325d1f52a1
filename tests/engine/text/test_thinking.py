"""What a model thinks and what it says: the tags in use, templates that open them, cuts anywhere, tags that are only mentioned."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlx_lm.utils import load_tokenizer

from engine import GenerationRequest, Started, load
from engine.models import ResolvedPair
from engine.request import Message
from engine.text.chat import chat_turns, render_chat, thinking_switch
from engine.text.thinking import TAGS, ThinkingSplitter, opening_tag, split_thinking

SWITCHED = (
    "{% for m in messages %}[{{ m.role }}]{% if m.reasoning_content and loop.last %}({{ m.reasoning_content }}){% endif %}"
    "{{ m.content }}{% endfor %}[assistant]{% if enable_thinking is not defined or enable_thinking %}<think>\n"
    "{% else %}<think>\n\n</think>\n\n{% endif %}"
)
HARMONY = (
    "<|channel|>analysis<|message|>Let me see.<|end|><|start|>assistant<|channel|>commentary<|message|>One moment."
    "<|end|><|start|>assistant<|channel|>final<|message|>It is 4."
)
SAMPLES = [
    "<think>\nhm\n</think>\n\nFour.",
    "No thoughts at all, a < b and <thin air>.",
    "<think>so `</think>` ends it, ``<think>`` begins it\n```xml\n<think>\nx\n</think>\n```\nyes</think>A",
    "<think>\n```py\nforgotten fence\n</think>\nB",
    "raw reasoning\n</think>\n\nC",
    "say\n<think>\nmore\n</think>\nD",
    "Use it:\n```\n<think>\nx\n</think>\n```\nE `</think>` F",
    "<think>cut inside",
    HARMONY,
    "<|channel>thought\nG\n<channel|>H",
    "[THINK]I[/THINK]J",
]


def fed(pieces: list[str], opened: str = "") -> tuple[str, str]:
    splitter, thinking, answer = ThinkingSplitter(opened), "", ""
    for part in [*(splitter.feed(piece) for piece in pieces), splitter.finish()]:
        if part.moved:
            thinking, answer = thinking + answer, ""
        thinking, answer = thinking + part.thinking, answer + part.answer
    return thinking, answer


@pytest.mark.parametrize(("opening", "closing"), TAGS)
def test_every_pair_of_tags_in_use_parts_thoughts_from_the_answer(opening: str, closing: str) -> None:
    assert split_thinking(f"{opening}\nFirst.\n{closing}\n\nSecond.") == ("First.", "Second.")


def test_the_channels_of_gpt_oss_are_told_apart() -> None:
    assert split_thinking(HARMONY) == ("Let me see.", "One moment.\n\nIt is 4.")


def test_tags_that_are_only_mentioned_stay_text() -> None:
    for text in (
        "The tag `<think>` opens and `</think>` closes.",
        "Look:\n\n```html\n<think>\nhidden\n</think>\n```\n\nThat is all.",
        "Write <think> first, then </think> after it.",
    ):
        assert split_thinking(text) == ("", text)
    thoughts, answer = split_thinking("<think>I must not write `</think>` yet.\n</think>\nDone.")
    assert (thoughts, answer) == ("I must not write `</think>` yet.", "Done.")
    thoughts, answer = split_thinking("<think>Format:\n```\n<think>\nx\n</think>\n```\nGood.\n</think>\nDone.")
    assert thoughts.endswith("Good.") and answer == "Done."


def test_a_closing_tag_after_a_forgotten_fence_still_ends_the_thoughts() -> None:
    assert split_thinking("<think>\n```py\nx = 1\n</think>\nDone.")[1] == "Done."


def test_thoughts_that_the_template_opened_and_that_are_cut_stay_thoughts() -> None:
    assert fed(["First ", "this"], "<think>") == ("First this", "")
    assert fed(["First\n</think>", "\n\nThat"], "<think>") == ("First\n", "That")


def test_a_closing_tag_without_an_opening_one_turns_the_text_before_into_thoughts() -> None:
    assert split_thinking("I wonder.\nPerhaps.\n</think>\n\nFour.") == ("I wonder.\nPerhaps.", "Four.")


def test_empty_thoughts_are_none() -> None:
    splitter = ThinkingSplitter()
    splitter.feed("<think>\n\n</think>\n\nHi")
    splitter.finish()
    assert not splitter.thought and not splitter.thinking


@pytest.mark.parametrize("text", SAMPLES)
def test_the_split_is_the_same_however_the_text_is_cut(text: str) -> None:
    whole = fed([text])
    assert fed(list(text)) == whole
    for size in (2, 3, 5, 7):
        assert fed([text[start : start + size] for start in range(0, len(text), size)]) == whole


@given(st.lists(st.sampled_from(["<think>", "</think>", "`", "```", "\n", "a", " ", "<", "think>", "<|channel|>", "<|message|>"])))
@settings(max_examples=300, deadline=None)
def test_any_cut_of_any_text_gives_the_same_split_and_loses_no_word(parts: list[str]) -> None:
    text = "".join(parts)
    assert fed(parts) == fed([text]) == fed(list(text))
    if "<|" not in text:
        assert sum(map(len, fed([text]))) >= text.count("a")


@pytest.mark.parametrize(
    ("prompt", "tag"),
    [("<|im_start|>assistant\n<think>\n", "<think>"), ("assistant\n<think>\n\n</think>\n\n", ""), ("<|im_start|>assistant\n", "")],
)
def test_the_prompts_end_says_whether_the_template_opened_thinking(prompt: str, tag: str) -> None:
    assert opening_tag(prompt) == tag


@pytest.fixture
def thinker(starter: ResolvedPair) -> Any:
    tokenizer = load_tokenizer(starter.target)
    tokenizer._tokenizer.chat_template = SWITCHED
    return tokenizer


@pytest.mark.parametrize(
    "line", ["<think>\nx\n</think>\n", "```\n</think>\n```\n", "<|channel|>a<|message|>b", "```\n", "` </think> ` "]
)
def test_the_work_grows_no_faster_than_the_text(line: str) -> None:
    """A client's turn of a megabyte must not keep the server from everybody else for hours."""
    calls: list[int] = []
    for size in (20_000, 80_000):
        text, counted = line * (size // len(line)), [0]

        def count(*_: Any, counted: list[int] = counted) -> None:
            counted[0] += 1

        sys.setprofile(count)
        try:
            split_thinking(text)
        finally:
            sys.setprofile(None)
        calls.append(counted[0])
    assert calls[1] < 5 * calls[0]


def test_a_templates_switch_is_found_and_followed(thinker: Any, starter: ResolvedPair) -> None:
    turn = [Message("user", "Hi")]
    assert thinking_switch(thinker) and not thinking_switch(load_tokenizer(starter.target))
    assert opening_tag(render_chat(thinker, turn, True)) == "<think>"
    assert opening_tag(render_chat(thinker, turn, False)) == ""


def test_earlier_thoughts_go_to_the_template_apart_from_the_answer(thinker: Any) -> None:
    chat = [Message("user", "1"), Message("assistant", "<think>\nhm\n</think>\n\nFour."), Message("user", "2")]
    assert chat_turns(chat)[1] == {"role": "assistant", "content": "Four.", "reasoning_content": "hm", "thinking": "hm"}
    text = render_chat(thinker, chat, True)
    assert "Four." in text and "hm" not in text and text.endswith("<think>\n")


@pytest.mark.slow
def test_the_engine_says_that_the_prompt_left_thinking_open_and_how_long_it_thought(
    starter: ResolvedPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = load(str(starter.target))
    try:
        engine._tokenizer._tokenizer.chat_template = SWITCHED.replace("<think>\n", "One, two, three, four, <think>\n", 1)
        settled: list[tuple[str, list[int]]] = []
        record = lambda encode, chat, text: settled.append((text, encode(chat))) or encode(chat)  # noqa: E731
        monkeypatch.setattr("engine.engine.continued_prefix", record)
        events = list(engine.generate(GenerationRequest.of("Count", mode="lookup", max_tokens=6, thinking=True)))
        engine.settle()
        started = next(event for event in events if isinstance(event, Started))
        statistics = events[-1].statistics
        assert started.open_tag == "<think>"
        prompt = engine.encode([Message("user", "Count")], thinking=True)
        assert settled == [("<think>" + events[-1].text, prompt)], "the next prompt begins with what the template makes of both"
        assert statistics.thinking_tokens == 6 and statistics.thinking_s == pytest.approx(statistics.decode_s)
        events = list(engine.generate(GenerationRequest.of("Count", mode="lookup", max_tokens=6, thinking=False)))
        assert next(event for event in events if isinstance(event, Started)).open_tag == ""
        assert events[-1].statistics.thinking_tokens == 0
    finally:
        engine.close()
