"""Makes the starter draft small enough for git: quantises a bf16 DFlash checkpoint with MLX affine quantisation.

    python packaging/quantise_draft.py SOURCE_DIRECTORY [--output resources/starter/draft] [--bits 5] [--group-size 64]

Every matrix becomes ``<name>.weight/.scales/.biases``; norms stay as they are. The width is written to config.json as
``"quantization": {"bits": B, "group_size": G}``, so the loader needs no other hint.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import mlx.core as mx


def quantise(weights: dict[str, mx.array], bits: int, group_size: int) -> dict[str, mx.array]:
    """Quantises the matrices among ``weights``; vectors (the norms) are passed through.

    Raises ``ValueError`` where a matrix's rows cannot be cut into whole groups.
    """
    result: dict[str, mx.array] = {}
    for name, weight in sorted(weights.items()):
        if weight.ndim != 2:
            result[name] = weight
            continue
        if weight.shape[1] % group_size:
            raise ValueError(f"{name} has rows of {weight.shape[1]}, which {group_size} does not divide")
        stem = name.removesuffix(".weight")
        # Scales are fitted in fp32 and stored in the checkpoint's own type: fitting in bf16 loses a little for nothing.
        packed, scales, biases = mx.quantize(weight.astype(mx.float32), group_size=group_size, bits=bits)
        result[f"{stem}.weight"] = packed
        result[f"{stem}.scales"] = scales.astype(weight.dtype)
        result[f"{stem}.biases"] = biases.astype(weight.dtype)
    return result


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path, help="the bf16 draft: a directory with config.json and model.safetensors")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent.parent / "resources/starter/draft")
    parser.add_argument("--bits", type=int, default=5, choices=(2, 3, 4, 5, 6, 8))
    parser.add_argument("--group-size", type=int, default=64, choices=(32, 64, 128))
    options = parser.parse_args(arguments)
    mx.set_default_device(mx.cpu)
    config = json.loads((options.source / "config.json").read_text("utf-8"))
    weights = mx.load(str(options.source / "model.safetensors"))
    if not isinstance(weights, dict):
        raise TypeError("a safetensors file loads as a dictionary")
    packed = quantise(weights, options.bits, options.group_size)
    config["quantization"] = {"bits": options.bits, "group_size": options.group_size}
    options.output.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(options.output / "model.safetensors"), packed, {"format": "mlx"})
    (options.output / "config.json").write_text(json.dumps(config, indent=1) + "\n", "utf-8")
    size = (options.output / "model.safetensors").stat().st_size
    print(f"{options.bits} bit, groups of {options.group_size}: {size / 1e6:.1f} MB in {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
