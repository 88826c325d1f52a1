"""What a request refuses, by name and in one line, and that it stays a value: hashable, whatever the bias came as."""

from __future__ import annotations

import math

import pytest

from engine import GenerationRequest, Message, RequestError
from engine.request import WHOLE_NUMBERS

OUT_OF_RANGE = [
    *({"temperature": value} for value in (-0.1, 5.1, math.nan, math.inf)),
    *({"top_p": value} for value in (0.0, -0.5, 1.01, math.nan, math.inf)),
    *({"top_k": value} for value in (-1, -50)),
    *({"min_p": value} for value in (-0.1, 1.1, math.nan)),
    *({"repetition_penalty": value} for value in (0.0, 1e-45, -1.0, 10.5, math.nan, math.inf)),
    *({"presence_penalty": value} for value in (-2.1, 2.1, math.nan, -math.inf)),
    *({"frequency_penalty": value} for value in (-2.1, 2.1, math.nan, math.inf)),
    *({"logit_bias": {7: value}} for value in (-100.5, 100.5, math.nan, math.inf)),
    {"logit_bias": {-1: 1.0}},
    *({"logit_bias": value} for value in ({"7": 1.0}, {7: "1"}, {7: None}, {True: 1.0}, {7.0: 1.0}, "7=1", None, [7, 1.0])),
    *({"logprobs": value} for value in (-1, 21)),
]
EDGES = [
    *({"temperature": value} for value in (0.0, 5.0)),
    *({"top_p": value} for value in (1e-9, 1.0)),
    *({"top_k": value} for value in (0, 1, 10**9)),
    *({"min_p": value} for value in (0.0, 1.0)),
    *({"repetition_penalty": value} for value in (0.01, 10.0)),
    *({"presence_penalty": value} for value in (-2.0, 2.0)),
    *({"frequency_penalty": value} for value in (-2.0, 2.0)),
    {"logit_bias": {0: -100.0, 5: 100.0}},
    *({"logprobs": value} for value in (0, 20, None)),
]


@pytest.mark.parametrize("settings", OUT_OF_RANGE, ids=str)
def test_a_sampling_value_out_of_range_is_refused_by_name_in_one_line(settings: dict) -> None:
    with pytest.raises(RequestError, match=f"^{next(iter(settings))} .*: (choose|give) .*\\.$"):
        GenerationRequest.of("hello", **settings)


@pytest.mark.parametrize("settings", EDGES, ids=str)
def test_the_edges_of_each_range_are_taken(settings: dict) -> None:
    (name,) = settings
    kept = getattr(GenerationRequest.of("hello", **settings), name)
    assert (dict(kept) if name == "logit_bias" else kept) == settings[name]


def test_a_request_is_a_value_whatever_the_order_of_its_bias() -> None:
    first = GenerationRequest.of("hello", logit_bias={3: 1.0, 1: -2.0})
    second = GenerationRequest.of("hello", logit_bias={1: -2.0, 3: 1.0})
    assert first == second and hash(first) == hash(second) and first.logit_bias == ((1, -2.0), (3, 1.0))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"stop": "10"}, "stop is '10': give a list"),
        ({"stop": ("",)}, "not empty"),
        ({"stop": (7,)}, "give a list of texts"),
        ({"stop": None}, "give a list of texts"),
        *(({name: 2.0}, f"{name} is 2.0: give a whole number") for name in WHOLE_NUMBERS),
        ({"max_tokens": True}, "max_tokens is True"),
        ({"temperature": "0.5"}, "temperature is '0.5': give a number"),
    ],
)
def test_a_value_of_another_kind_is_refused_before_anything_meets_it(settings: dict, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        GenerationRequest.of("hello", **settings)


@pytest.mark.parametrize("message", [Message("function", "4"), Message("user", None), Message("robot", "x")])  # type: ignore[arg-type]
def test_a_message_that_no_chat_has_is_refused(message: Message) -> None:
    with pytest.raises(RequestError, match="A message has the role"):
        GenerationRequest((Message("user", "hello"), message))
