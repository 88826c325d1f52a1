"""Small models as they lie on the hub: real safetensors files of any size, with a config that tells a family."""

from __future__ import annotations

import json
import random
import struct
from typing import Any

from tests.hub_server import HubServer

QWEN3 = {"model_type": "qwen3", "hidden_size": 64, "vocab_size": 500, "num_hidden_layers": 4, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 4096, "intermediate_size": 96}  # fmt: skip


def safetensors(size: int, seed: int = 0) -> bytes:
    """A valid file with one tensor of ``size`` random bytes."""
    header = json.dumps({"weight": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    return struct.pack("<Q", len(header)) + header + random.Random(seed).randbytes(size)


def add_model(
    hub: HubServer, name: str, sizes: tuple[int, ...] = (200_000,), config: dict[str, Any] | None = None, **settings: Any
) -> dict[str, bytes]:
    """Puts a model with weight files of ``sizes`` bytes on the hub and returns its files."""
    seed = sum(name.encode())
    files: dict[str, bytes] = {"config.json": json.dumps(config or QWEN3).encode(), "README.md": f"# {name}".encode()}
    if "dflash_config" not in (config or {}):
        files["tokenizer.json"] = b"{}"
    if len(sizes) == 1:
        files["model.safetensors"] = safetensors(sizes[0], seed)
    else:
        shards = [f"model-{index:05}-of-{len(sizes):05}.safetensors" for index in range(1, len(sizes) + 1)]
        files |= {shard: safetensors(size, seed + index) for index, (shard, size) in enumerate(zip(shards, sizes, strict=True))}
        files["model.safetensors.index.json"] = json.dumps({"weight_map": dict(enumerate(shards))}).encode()
    hub.add(name, files | {"pytorch_model.bin": b"not wanted"}, **settings)
    return files
