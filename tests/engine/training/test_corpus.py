"""Which texts are learned from: no loops, no text twice, enough of them, and those held out never trained on."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import RequestError
from engine.training.corpus import Text, build_corpus, loop_start, without_loops


def text(seed: int, length: int = 80) -> Text:
    ids = np.random.default_rng(seed).integers(0, 1000, length).tolist()
    return Text(tuple(ids), tuple([False] * 10 + [True] * (length - 10)))


def test_an_answer_counts_up_to_where_it_begins_to_repeat_itself() -> None:
    fresh = list(range(100, 130))
    ids = [1, 2, 3, *fresh, *[7, 8, 9] * 20]
    kept = without_loops(ids, [False] * 3 + [True] * (len(ids) - 3))
    assert kept == [False] * 3 + [True] * (len(fresh) + 3) + [False] * (len(ids) - 3 - len(fresh) - 3)


def test_a_loop_in_one_answer_leaves_the_next_answer_alone() -> None:
    first, second = [5] * 60, list(range(200, 240))
    ids = [*first, 0, *second]
    kept = without_loops(ids, [True] * 60 + [False] + [True] * 40)
    assert kept == [True] + [False] * 60 + [True] * 40


@pytest.mark.parametrize("ids", [list(range(200)), [1, 2, 3] * 8, list(range(30)) * 2])
def test_short_repetitions_as_in_lists_and_quotes_are_no_loops(ids: list[int]) -> None:
    assert loop_start(ids) is None or loop_start(ids) >= len(ids) - 1


def test_texts_held_out_are_not_among_those_trained_on_and_repeated_texts_count_once() -> None:
    texts = [text(seed) for seed in range(20)]
    corpus = build_corpus(texts + texts[:7], held_out=4, seed=1)
    trained = {tuple(row.tolist()) for row in corpus.ids}
    assert len(corpus.held_out) == 4 and len(corpus.ids) == len(trained) == 16
    assert not trained & {held.ids for held in corpus.held_out}


def test_padding_is_never_an_answer_and_counts_are_of_answers_alone() -> None:
    corpus = build_corpus([text(seed, 60 + seed) for seed in range(20)], held_out=2, seed=0)
    said = [row[mask] for row, mask in zip(corpus.ids, corpus.answer, strict=True)]
    assert corpus.counts(1000).sum() == corpus.answer.sum() == sum(len(tokens) for tokens in said)
    assert all(not mask[np.flatnonzero(mask)[-1] + 1 :].any() for mask in corpus.answer)


@pytest.mark.parametrize("texts", [[], [text(1)], [text(seed, 20) for seed in range(10)]])
def test_too_little_text_is_refused_with_what_is_needed(texts: list[Text]) -> None:
    with pytest.raises(RequestError, match=r"too little to learn from .* give at least 4 chats"):
        build_corpus(texts, held_out=2, seed=0)
