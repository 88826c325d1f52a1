"""Imports a llama-architecture GGUF file as an mlx-lm model directory, without changing a single weight's value."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

from engine.errors import Cancelled, ModelError
from engine.models import manifest
from engine.models.gguf_file import GgufFile
from engine.models.gguf_llama import Shape, module_of
from engine.models.gguf_tensors import GROUP_SIZE, Weight, convert
from engine.models.gguf_tokenizer import write_tokenizer
from engine.models.staging import staged_folder, write_problem


def import_gguf(
    source: Path,
    destination: Path,
    progress: Callable[[float], None] | None = None,
    cancel: threading.Event | None = None,
    source_sha256: str | None = None,
) -> Path:
    """Writes ``destination`` (replaced if it is an earlier import) and returns it. ``progress`` gets a fraction in 0..1.

    ``source_sha256`` is recorded in the manifest. Raises ``ModelError`` in one line for a file that cannot be imported,
    a ``destination`` that holds something else or a disk that is full, or ``Cancelled``; then, and after Ctrl-C,
    ``destination`` is as it was and nothing is left.
    """
    file = GgufFile(source)
    shape = Shape.read(file)
    try:
        _check_free(destination)
        with staged_folder(destination) as staged:
            token_ids = write_tokenizer(file, staged, shape.context)
            weights = _read_weights(file, shape, progress or (lambda fraction: None), cancel)
            _write_json(staged / "config.json", _config(file, shape, weights) | token_ids)
            arrays: dict[str, NDArray] = {}
            for module, weight in weights.items():
                arrays |= weight.named(module)
            save_file(arrays, staged / "model.safetensors", metadata={"format": "mlx"})
            # safetensors makes its files private; the others follow the user's own mask.
            (staged / "model.safetensors").chmod((staged / "config.json").stat().st_mode)
            manifest.write(staged, source_sha256)
    except (OSError, SafetensorError) as error:
        raise ModelError(write_problem(error, destination)) from error
    return destination


def _check_free(folder: Path) -> None:
    """Only what an import wrote may be replaced: a folder takes everything in it along."""
    if folder.is_dir():
        others = {path.name for path in folder.iterdir()} - {*manifest.listed(folder), manifest.NAME, ".DS_Store"}
    else:
        others = {folder.name} if folder.exists() else set()
    if others:
        raise ModelError(f"{folder} holds {min(others)}, which no import wrote: give the name of a new folder.")


def _read_weights(
    file: GgufFile, shape: Shape, progress: Callable[[float], None], cancel: threading.Event | None
) -> dict[str, Weight]:
    weights: dict[str, Weight] = {}
    for index, (name, data, kind, dimensions) in enumerate(file.tensors()):
        if cancel is not None and cancel.is_set():
            raise Cancelled("The import was stopped.")
        module = module_of(name)
        if module is None:
            raise ModelError(f"{file.path.name} has a tensor {name} that is not supported.")
        expected = shape.expected_shape(module)
        if expected is not None and expected != dimensions:
            raise ModelError(f"{file.path.name} has a {name} of shape {dimensions} where {expected} was expected.")
        try:
            weight = convert(data, kind)
        except NotImplementedError as error:
            raise ModelError(f"{file.path.name} has {name} in {kind.name}, which is not supported.") from error
        order = shape.row_order(module)
        weights[module] = weight if order is None else weight.rows(order)
        progress((index + 1) / file.tensor_count)
    missing = shape.modules() - weights.keys()
    if missing:
        raise ModelError(f"{file.path.name} has no tensor for {min(missing)}: it is incomplete.")
    return weights


def _config(file: GgufFile, shape: Shape, weights: dict[str, Weight]) -> dict[str, Any]:
    vocabulary = weights["model.embed_tokens"].weight.shape[0]
    tokens = len(file.get("tokenizer.ggml.tokens", list))
    if tokens > vocabulary:
        raise ModelError(f"{file.path.name} names {tokens} tokens and embeds {vocabulary}: it cannot be imported.")
    config = shape.config(vocabulary, tied="lm_head" not in weights)
    widths = {module: weight.bits for module, weight in weights.items() if weight.bits is not None}
    if widths:
        common = Counter(widths.values()).most_common(1)[0][0]
        others: dict[str, Any] = {
            module: {"group_size": GROUP_SIZE, "bits": bits} for module, bits in widths.items() if bits != common
        }
        config["quantization"] = {"group_size": GROUP_SIZE, "bits": common} | others
    return config


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
