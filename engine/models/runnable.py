"""Whether what a config.json describes can run here: told before weights are fetched, or given up for. No MLX here."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from engine.drafters.dflash.packaging import packaging_of
from engine.errors import ModelError
from engine.models.checkpoint import Config, is_draft_config
from engine.targets.families import known_families, supported_families

OTHER_FAMILY = "choose a model of another family, such as llama, qwen3 or gemma3."
OTHER_CONVERSION = "choose an MLX conversion of the model, in 4 or 8 bits."
# Supported families whose 8-bit floats mlx-lm expands while it reads them; of others not listed as supported nothing is said.
READ_FP8 = frozenset({"mimo_v2_flash", "ministral3"})
READ_METHODS = frozenset({"bitnet", "mxfp4", "mxfp8", "awq", "gptq"})
READ_FORMATS = frozenset({"nvfp4-pack-quantized", "mxfp4-pack-quantized", "pack-quantized"})  # of compressed-tensors


class Refusal(NamedTuple):
    """``what`` is in the way, and the ``action`` that helps."""

    what: str
    action: str

    def __str__(self) -> str:
        return f"{self.what}: {self.action}"


def refusal(config: dict[str, Any], name: str) -> Refusal | None:
    """Why the model or draft ``name`` cannot run here by its config.json; None where that has nothing against it."""
    if is_draft_config(config):
        return _draft_refusal(config, name)
    family = config.get("model_type")
    if not isinstance(family, str) or not family:
        return Refusal(f"{name} has no 'model_type' in its config.json", "choose another conversion of the model.")
    if config.get("model_file") is not None:
        what = f"{name} needs program code of its own ({config['model_file']}), which is not run here"
        return Refusal(what, "choose another conversion of the model.")
    if family not in known_families():
        return Refusal(f"{name} is of the family {family!r}, which mlx-lm {_version()} does not know", OTHER_FAMILY)
    encoding = _foreign_encoding(config, family)
    if encoding is not None:
        return encoded_refusal(name, family, encoding)
    return None


def encoded_refusal(name: str, family: str, encoding: str) -> Refusal:
    """For weights in an ``encoding`` that mlx-lm does not read for this family."""
    what = f"The weights of {name} are stored as {encoding}, in which models of the family {family!r} do not run here"
    return Refusal(what, OTHER_CONVERSION)


def folder_problem(folder: Path) -> str | None:
    """``refusal`` of the model in ``folder``, in one line; None also where its config.json cannot be read, which others tell."""
    try:
        found = refusal(Config.read(folder).values, str(folder))
    except ModelError:
        return None
    return None if found is None else str(found)


def _draft_refusal(config: dict[str, Any], name: str) -> Refusal | None:
    try:
        packaging_of(Config(Path(name) / "config.json", config))
    except ModelError as error:
        what, _, action = str(error).rpartition(": ")
        return Refusal(what, action)
    return None


def _foreign_encoding(config: dict[str, Any], family: str) -> str | None:
    """What the weights are stored as where mlx-lm would take it for something else, None where it reads them."""
    text = config.get("text_config")
    settings = config.get("quantization_config") or (text.get("quantization_config") if isinstance(text, dict) else None)
    method = settings.get("quant_method") if isinstance(settings, dict) else None
    if config.get("quantization") is not None or not isinstance(settings, dict) or not isinstance(method, str):
        return None
    if method == "fp8":
        packed = settings.get("scale_fmt") == "ue8m0" and settings.get("weight_block_size") == [32, 32]
        expanded = packed or family in READ_FP8 or family not in supported_families()
        return None if expanded else "8-bit floats (fp8)"
    if method == "compressed-tensors":
        form = settings.get("format")
        return None if form in READ_FORMATS else "8-bit floats (fp8)" if form == "float-quantized" else f"{method} ({form})"
    if method == "modelopt":
        nested = settings.get("quantization")
        algorithm = (nested if isinstance(nested, dict) else settings).get("quant_algo")
        return None if algorithm == "NVFP4" else f"{method} ({algorithm})"
    return None if method in READ_METHODS else method


def _version() -> str:
    try:
        return version("mlx-lm")
    except PackageNotFoundError:
        return "here"
