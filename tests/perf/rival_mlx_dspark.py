"""Runs in the rival's own environment: mlx-dspark on a target and a draft folder, one JSON object on stdout. No import of ours."""

import ctypes
import json
import sys

ctypes.CDLL("libopenblas.so.0", mode=ctypes.RTLD_GLOBAL)  # the same BLAS as ours, for a fair race

import mlx.core as mx  # noqa: E402
from mlx_dspark.generate import dflash_generate, greedy_generate  # noqa: E402
from mlx_dspark.load import load_dflash, load_target  # noqa: E402


def main(target_folder: str, draft_folder: str, prompt: str, max_tokens: int, rounds: int) -> None:
    target, tokenizer = load_target(target_folder, require_tap=True)[:2]
    loaded = load_dflash(draft_folder, quantize=False)
    draft = loaded[0] if isinstance(loaded, tuple) else loaded
    draft.set_dtype(mx.float32)
    mx.eval(draft.parameters())

    def plain():
        return greedy_generate(target, tokenizer, prompt, max_new_tokens=max_tokens)

    def dflash(proposed):
        return dflash_generate(target, tokenizer, draft, prompt, max_new_tokens=max_tokens, max_draft_tokens=proposed)

    plain(), dflash(7)
    results = {"plain": [], **{f"dflash {proposed}": [] for proposed in (3, 5, 7, 11, 15)}}
    for _ in range(rounds):
        for name, rates in results.items():
            answer = plain() if name == "plain" else dflash(int(name.split()[1]))
            rates.append(answer.decode_tokens_per_sec)
    print(json.dumps({"tokens": answer.num_tokens, "rates": results}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
