"""ml-explore/mlx-lm#1181, ml-explore/mlx#3727: generating off the thread that loaded ended the process or raised about streams."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from engine import GenerationRequest, RequestError
from engine.engine import Engine
from engine.loading import read_tokenizer
from engine.models import ResolvedPair
from tests.engine.tiny import copy_tokenizer
from tests.regressions.pairs import tiny_engine  # noqa: F401


@pytest.mark.parametrize("call", ["generate", "settle", "close"])
def test_every_call_from_another_thread_is_refused_and_the_engine_goes_on(tiny_engine: Engine, call: str) -> None:  # noqa: F811
    refused: list[BaseException] = []
    calls: dict[str, Callable[[], object]] = {
        "generate": lambda: list(tiny_engine.generate(GenerationRequest.of("hello", max_tokens=2))),
        "settle": tiny_engine.settle,
        "close": tiny_engine.close,
    }

    def elsewhere() -> None:
        try:
            calls[call]()
        except RuntimeError as error:
            refused.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(refused) == 1 and "belongs to the thread that loaded it" in str(refused[0])
    assert list(tiny_engine.generate(GenerationRequest.of("hello", max_tokens=2)))


def test_prompts_are_counted_on_any_thread_while_an_answer_runs(tiny_engine: Engine) -> None:  # noqa: F811
    """huggingface/tokenizers#537: a tokenizer that two threads use says "Already borrowed" where one of them changes it."""
    requests = [GenerationRequest.of("hello " * words, max_tokens=40) for words in (1, 30, 200)]
    wanted, counted, done = [tiny_engine.check(request) for request in requests], list[int | Exception](), threading.Event()

    def count() -> None:
        while not done.is_set():
            try:
                counted.extend(tiny_engine.check(request) for request in requests)
            except Exception as error:
                counted.append(error)

    threads = [threading.Thread(target=count) for _ in range(2)]
    for thread in threads:
        thread.start()
    for request in requests:
        assert list(tiny_engine.generate(request))
    done.set()
    for thread in threads:
        thread.join()
    assert len(counted) >= 6 and set(counted) == set(wanted)


def test_a_tokenizer_whose_file_cuts_texts_is_changed_before_threads_share_it(tmp_path: Path, starter: ResolvedPair) -> None:
    folder = copy_tokenizer(starter.target, tmp_path)
    cutting = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    content = json.loads((folder / "tokenizer.json").read_text()) | {"truncation": cutting}
    (folder / "tokenizer.json").write_text(json.dumps(content))
    (folder / "config.json").write_text("{}")
    tokenizer = read_tokenizer(folder)
    assert tokenizer.backend_tokenizer.truncation is None and len(tokenizer.encode("one two three four five")) == 5


def test_a_closed_engine_counts_nothing_and_says_so(tiny_engine: Engine) -> None:  # noqa: F811
    tiny_engine.close()
    with pytest.raises(RequestError, match="was closed"):
        tiny_engine.check(GenerationRequest.of("hello"))
