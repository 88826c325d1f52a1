"""Runs z-lab's own MLX loop (package ``dflash``) on a list of prompts, one JSON object on stdout. No import of ours."""

import ctypes
import json
import statistics
import sys
import time
from contextlib import suppress

with suppress(OSError):
    ctypes.CDLL("libopenblas.so.0", mode=ctypes.RTLD_GLOBAL)  # on the CPU the same BLAS as ours, for a fair race

import dflash.model_mlx as loop
import mlx.core as mx
from mlx_lm.generate import stream_generate
from mlx_lm.utils import load

loop.snapshot_download = lambda folder, **_: folder  # it fetches drafts only from the hub; ours are folders


def plain(model, tokenizer, ids, max_tokens):
    """mlx-lm's plain decoding: token ids and tokens a second after the first."""
    tokens, first = [], None
    for response in stream_generate(model, tokenizer, ids, max_tokens=max_tokens):
        first = first or time.perf_counter()
        tokens.append(response.token)
    return tokens, _rate(len(tokens), first), None


def dflash(model, tokenizer, draft, ids, block, max_tokens):
    """The loop's own speculative decoding, and its tokens a cycle."""
    tokens, first, cycles = [], None, 0
    for response in loop.stream_generate(model, draft, tokenizer, ids, block_size=block, max_tokens=max_tokens):
        first = first or time.perf_counter()
        cycles += bool(tokens) and bool(response.tokens)
        tokens += response.tokens
    return tokens, _rate(len(tokens), first), (len(tokens) - 1) / cycles if cycles else None


def _rate(tokens, first):
    return (tokens - 1) / (time.perf_counter() - first) if tokens > 1 else 0.0


def main(target_folder, draft_folder, prompts_file, max_tokens, blocks, rounds):
    model, tokenizer = load(target_folder)
    draft = loop.load_draft(draft_folder)
    mx.eval(draft.parameters())
    with open(prompts_file, encoding="utf-8") as lines:
        prompts = [json.loads(line) for line in lines]
    results = []
    for number, prompt in enumerate([prompts[0], *prompts]):
        record = {"id": prompt["id"]}
        for name in ("plain", *(f"dflash {block}" for block in blocks)):
            runs = []
            for _ in range(rounds):
                if name == "plain":
                    runs.append(plain(model, tokenizer, prompt["ids"], max_tokens))
                else:
                    runs.append(dflash(model, tokenizer, draft, prompt["ids"], int(name.split()[1]), max_tokens))
            tokens, _, per_cycle = runs[-1]
            record[name] = {"tokens": tokens, "tok_s": statistics.median(run[1] for run in runs), "tokens_per_cycle": per_cycle}
        if number:  # the first prompt is run once more beforehand, to warm up
            results.append(record)
    print(json.dumps(results))


if __name__ == "__main__":
    blocks = [int(block) for block in sys.argv[5].split(",")]
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), blocks, int(sys.argv[6]))
