"""Runs in the rival's own environment: mlx-dspark on a target and a draft folder, a prompt a line on stdin. No import of ours."""

import ctypes
import json
import sys

ctypes.CDLL("libopenblas.so.0", mode=ctypes.RTLD_GLOBAL)  # the same BLAS as ours, for a fair race

import mlx.core as mx  # noqa: E402
from mlx_dspark.generate import dflash_generate, greedy_generate  # noqa: E402
from mlx_dspark.load import load_dflash, load_target  # noqa: E402

PROPOSED = (3, 5, 7, 11, 15)


def main(target_folder: str, draft_folder: str, max_tokens: int, rounds: int) -> None:
    target, tokenizer = load_target(target_folder, require_tap=True)[:2]
    loaded = load_dflash(draft_folder, quantize=False)
    draft = loaded[0] if isinstance(loaded, tuple) else loaded
    draft.set_dtype(mx.float32)
    mx.eval(draft.parameters())

    def plain(prompt):
        return greedy_generate(target, tokenizer, prompt, max_new_tokens=max_tokens)

    def dflash(prompt, proposed):
        return dflash_generate(target, tokenizer, draft, prompt, max_new_tokens=max_tokens, max_draft_tokens=proposed)

    plain("Hello!"), dflash("Hello!", 7)
    print("ready", flush=True)
    for line in sys.stdin:
        prompt = json.loads(line)
        results = {"plain": [], **{f"dflash {proposed}": [] for proposed in PROPOSED}}
        for _ in range(rounds):
            for name, rates in results.items():
                answer = plain(prompt) if name == "plain" else dflash(prompt, int(name.split()[1]))
                rates.append(answer.decode_tokens_per_sec)
        print(json.dumps({"tokens": answer.num_tokens, "rates": results}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
