"""Writes the training data with the target: chats, loops cut, evaluation prompts left out, token frequencies counted.

python write_data.py --gguf TARGET.gguf --tokenizer tokenizer.json --output data.pt --seconds 240
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from selfplay import ChatWriter, holds_any, loops, read_suite, seeded_scripts
from target import Shape, read_gguf
from tokenizers import Tokenizer
from torch import Tensor


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gguf", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--suite", type=Path, default=Path(__file__).parent / "eval_prompts.jsonl")
    parser.add_argument("--rows", type=int, default=2048, help="chats written side by side")
    parser.add_argument("--length", type=int, default=448, help="tokens in a chat")
    parser.add_argument("--turns", type=int, default=4, help="user turns prepared for a chat; most chats fill up with two")
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--layers", type=int, default=Shape().layers, help="fewer only to try the program out")
    return parser.parse_args(arguments)


def frequencies(ids: Tensor, supervised: Tensor, vocabulary: int) -> Tensor:
    """How often each token [V] stands in a supervised place."""
    return torch.bincount(ids[supervised].long(), minlength=vocabulary)


def report(tokenizer: Tokenizer, ids: Tensor, counts: Tensor) -> None:
    order = counts.sort(descending=True).values.double()
    shares = ", ".join(f"{k}: {order[:k].sum() / order.sum():.4f}" for k in (2048, 4096, 8192, 12288, 16384))
    print(f"coverage of the K most frequent tokens: {shares}", flush=True)
    for row in ids[:4].tolist():
        print("-----\n" + tokenizer.decode(row, skip_special_tokens=False)[110:1400], flush=True)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(options.seed)
    shape = Shape(layers=options.layers)
    tokenizer = Tokenizer.from_file(str(options.tokenizer))
    weights = read_gguf(options.gguf, shape).to(torch.bfloat16 if device.type == "cuda" else torch.float32, device)
    excluded = [
        tokenizer.encode(message["content"], add_special_tokens=False).ids[:-1]
        for _, messages in read_suite(options.suite)
        for message in messages
        if message["role"] == "user"
    ]
    excluded = [ids for ids in excluded if len(ids) >= 5]
    started, batch, kept = time.monotonic(), 0, []
    writer: ChatWriter | None = None
    while batch == 0 or time.monotonic() - started < options.seconds:
        scripts = seeded_scripts(tokenizer, options.rows, options.turns, options.seed * 1_000_003 + batch, device)
        if writer is None:
            writer = ChatWriter(weights, shape, options.rows, options.length, scripts)
        ids, offsets = writer.write(scripts)
        offsets = offsets.masked_fill(loops(ids, offsets), 0)
        good = ~holds_any(ids, excluded) & ((offsets > 0).sum(1) >= 32)
        kept.append((ids[good].to(torch.int32).cpu(), offsets[good].to(torch.uint8).cpu()))
        batch += 1
        if batch in (1, 2, 3) or batch % 10 == 0:
            rows, share = sum(len(i) for i, _ in kept), (offsets > 0).float().mean().item()
            print(f"batch {batch}: {rows} chats, {share:.3f} supervised, {time.monotonic() - started:.0f} s", flush=True)
    all_ids, all_offsets = torch.cat([i for i, _ in kept]), torch.cat([o for _, o in kept])
    counts = frequencies(all_ids, all_offsets > 0, shape.vocabulary)
    torch.save({"ids": all_ids, "offsets": all_offsets, "counts": counts}, options.output)
    print(f"{len(all_ids)} chats, {int((all_offsets > 0).sum())} supervised tokens, {batch} batches")
    report(tokenizer, all_ids, counts)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
