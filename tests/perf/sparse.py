"""Quality report of sparse prefill: needles found, agreement with whole prefill and time, against the share of the prompt read.

    python -m tests.perf.sparse OUT.jsonl [--model PAIR] [--cases N] [--tokens N] [--keeps K ...] [--scorers NAME ...] [--seconds S]

A needle is a sentence with a random code, hidden in filler of an earlier turn; the last turn asks for the code. Each case is run
whole and then with every scorer and share; what OUT.jsonl holds already is not run again, so that the report can be made in parts
(``--seconds`` ends a part). At the end a table of all cases in the file is printed.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import mlx.core as mx

from engine import Message, SparsePrefill, load
from engine.engine import Engine
from engine.prefill.attention import attention_weights
from engine.prefill.chunked import Prefilled, prefill
from engine.prefill.scorers import choose_tokens
from engine.prefill.selection import describe, runs_of
from engine.prefill.sparse import sparse_prefill
from engine.request import SCORERS, Scorer

KEEPS = (0.75, 0.5, 0.25)
ANSWER_TOKENS = 20
NAMES = ("Marta", "Oskar", "Lucia", "Felix", "Irene", "Pavel", "Nadia", "Bruno", "Hilde", "Tomas", "Greta", "Simon", "Vera")
FILLER = (
    "The harbour lay quiet under a thin fog.",
    "Rain had washed the long road to the mill.",
    "A dog slept in the shade of a chestnut tree.",
    "The baker opened his window before sunrise.",
    "Two old friends played chess near the fountain.",
    "A cart of apples stood beside the church wall.",
    "The river carried leaves toward the stone bridge.",
    "Children chased a red kite across the field.",
    "The library kept its doors open until evening.",
    "A teacher wrote a short poem on the board.",
)


def needle(engine: Engine, seed: int, tokens: int) -> tuple[list[Message], str]:
    """A chat of about ``tokens`` tokens with a code in its first turn, and the code."""
    chance = random.Random(seed)
    name, code = chance.choice(NAMES), str(chance.randrange(10_000, 100_000))
    sentences: list[str] = []
    length = 0
    while length < tokens:
        sentences.append(chance.choice(FILLER))
        length += len(engine._tokenizer.encode(" " + sentences[-1], add_special_tokens=False))
    sentences.insert(chance.randrange(1, len(sentences)), f"The secret code of {name} is {code}.")
    read = Message("user", "Read this text.\n\n" + " ".join(sentences)), Message("assistant", "I have read the text.")
    return [*read, Message("user", f"What is the secret code of {name}?")], code


def answer(engine: Engine, ready: Prefilled, cache: Any) -> list[int]:
    """The greedy answer, up to ``ANSWER_TOKENS`` or the stop token."""
    tokens, logits = [], ready.logits
    while len(tokens) < ANSWER_TOKENS:
        tokens.append(int(mx.argmax(logits[0]).item()))
        if tokens[-1] in engine.stop_ids:
            break
        logits = engine._target.forward(mx.array(tokens[-1:]), cache).logits
    return tokens


def run(engine: Engine, messages: list[Message], sparse: SparsePrefill | None, truth: list[int] | None) -> dict[str, Any]:
    """One prompt: the share read, seconds to the first token's logits, the answer and, given the whole prefill's answer as
    ``truth``, the share of its tokens that come out first when it is fed."""
    target, ids, never = engine._target, engine.encode(messages), threading.Event()
    start, share = time.perf_counter(), 1.0
    if sparse is None:
        cache = target.make_cache()
        outcomes = prefill(target, cache, ids, None, (), engine.prefill_chunk, never)
    else:
        prompt = describe(engine._tokenizer, messages, ids)
        attend = partial(attention_weights, target, ids, prompt.turn, engine.prefill_chunk)
        kept = choose_tokens(sparse, prompt, lambda token: engine.decode([token]), attend)
        cache, share = target.make_sparse_cache(), float(kept.mean())
        outcomes = sparse_prefill(target, cache, ids, runs_of(kept), None, (), engine.prefill_chunk, never)
    *_, ready = outcomes
    assert isinstance(ready, Prefilled)
    mx.eval(ready.logits)
    record: dict[str, Any] = {"prompt_tokens": len(ids), "share": share, "seconds": time.perf_counter() - start}
    if truth is not None:
        fed = target.forward(mx.array(truth), cache).logits
        first = [int(mx.argmax(ready.logits[0]).item()), *mx.argmax(fed, axis=-1).tolist()]
        record["agreement"] = sum(mine == theirs for mine, theirs in zip(first, truth, strict=False)) / len(truth)
        target.rollback(cache, len(truth))
    return record | {"answer": answer(engine, ready, cache)}


def missing(
    known: list[dict[str, Any]], cases: int, keeps: list[float], scorers: list[Scorer]
) -> Iterator[tuple[int, SparsePrefill | None]]:
    """What is not in the file yet, case by case, the whole prefill of each first."""
    done = {(record["seed"], record["scorer"], record["keep"]) for record in known}
    for seed in range(cases):
        settings = [None, *(SparsePrefill(keep, scorer) for keep in keeps for scorer in scorers)]
        for sparse in settings:
            if (seed, sparse.scorer if sparse else None, sparse.keep if sparse else 1.0) not in done:
                yield seed, sparse


def table(records: list[dict[str, Any]]) -> Iterator[str]:
    """One line a setting; time is the median ratio to the same case's whole prefill."""
    whole = {record["seed"]: record for record in records if record["scorer"] is None}
    yield "scorer    keep   read  cases  needles found  agreement  time"
    settings = sorted({(record["scorer"] or "", record["keep"]) for record in records}, key=lambda s: (s[0], -s[1]))
    for scorer, keep in settings:
        rows = [record for record in records if ((record["scorer"] or ""), record["keep"]) == (scorer, keep)]
        found = sum(record["found"] for record in rows) / len(rows)
        agreed = statistics.mean(record.get("agreement", 1.0) for record in rows)
        ratio = statistics.median(record["seconds"] / whole[record["seed"]]["seconds"] for record in rows)
        read = statistics.mean(record["share"] for record in rows)
        yield f"{scorer or 'whole':<8} {keep:>5.2f}  {read:>5.2f}  {len(rows):>5}  {found:>12.1%}  {agreed:>9.1%}  {ratio:>4.2f}"


def main() -> None:
    """Runs what is missing and prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", default="starter")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--tokens", type=int, default=1_000)
    parser.add_argument("--keeps", type=float, nargs="+", default=KEEPS)
    parser.add_argument("--scorers", choices=SCORERS, nargs="+", default=SCORERS)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    arguments = parser.parse_args()
    records = [json.loads(line) for line in arguments.out.read_text().splitlines()] if arguments.out.exists() else []
    engine, end = load(arguments.model), time.monotonic() + arguments.seconds
    for seed, sparse in missing(records, arguments.cases, arguments.keeps, arguments.scorers):
        if time.monotonic() > end:
            break
        messages, code = needle(engine, seed, arguments.tokens)
        whole = next((record for record in records if record["seed"] == seed and record["scorer"] is None), None)
        record = run(engine, messages, sparse, whole["answer"] if whole else None)
        key = {"seed": seed, "scorer": sparse.scorer if sparse else None, "keep": sparse.keep if sparse else 1.0}
        record = key | record | {"found": code in engine.decode(record["answer"]), "text": engine.decode(record["answer"])}
        records.append(record)
        with arguments.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
    print(*table(records), sep="\n")


if __name__ == "__main__":
    main()
