"""Reading a checkpoint folder with care: typed config values and whole safetensors files, or one clear error. No MLX here."""

from __future__ import annotations

import json
import math
import reprlib
import struct
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.errors import ModelError

ITEM_BITS = {"F64": 64, "F32": 32, "F16": 16, "BF16": 16, "I64": 64, "I32": 32, "I16": 16, "I8": 8, "U64": 64, "U32": 32,
             "U16": 16, "U8": 8, "BOOL": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8}  # fmt: skip
MAX_HEADER_BYTES = 100 * 2**20
# What mlx-lm makes one by one as a config.json counts it, and more of each than any model has.
COUNTS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "num_kv_reuse_layers", "num_experts", "num_local_experts",
          "n_routed_experts", "moe_num_experts", "altup_num_inputs", "o_groups")  # fmt: skip
MOST = 4096


class Config:
    """A config.json. ``get`` checks the type and accepts a key flat or inside any of the given sections."""

    def __init__(self, path: Path, values: dict[str, Any]):
        self.path, self.values = path, values

    @classmethod
    def read(cls, folder: Path) -> Config:
        """Raises ``ModelError`` where the folder or its config.json is missing, is not a JSON object or counts what cannot be."""
        path = folder / "config.json"
        if not folder.is_dir():
            raise ModelError(f"{folder} is not a folder: give the folder of a downloaded model.")
        try:
            values = parse_json(path.read_bytes())
        except FileNotFoundError:
            raise ModelError(f"{folder} has no config.json: give the folder of a complete model.") from None
        except (OSError, ValueError) as error:
            raise ModelError(f"{path} cannot be read ({error}): download the model again.") from error
        if not isinstance(values, dict):
            raise ModelError(f"{path} is not a JSON object: download the model again.")
        for place in (values, *(section for section in values.values() if isinstance(section, dict))):
            wrong = next((key for key in COUNTS if isinstance(place.get(key), int) and place[key] > MOST), None)
            if wrong:
                raise ModelError(f"{path}: {wrong!r} is {reprlib.repr(place[wrong])}, which cannot be: download the model again.")
        return cls(path, values)

    def get(self, key: str, kind: type, default: Any = None, sections: tuple[str, ...] = ()) -> Any:
        """The value, or ``default`` where it is absent or null; ``ModelError`` where its type is wrong."""
        places = [self.values, *(self.values.get(section) for section in sections)]
        for place in places:
            if isinstance(place, dict) and place.get(key) is not None:
                return self._typed(key, place[key], kind)
        return default

    def need(self, key: str, kind: type, sections: tuple[str, ...] = ()) -> Any:
        """The value; ``ModelError`` where it is absent."""
        value = self.get(key, kind, sections=sections)
        if value is None:
            raise ModelError(f"{self.path} lacks {key!r}: the model is incomplete, download it again.")
        return value

    def _typed(self, key: str, value: Any, kind: type) -> Any:
        if kind is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) < sys.float_info.max:
            value = float(value)
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            found = reprlib.repr(value)
            raise ModelError(f"{self.path}: {key!r} is {found}, expected {kind.__name__}: download the model again.")
        return value


def parse_json(text: bytes | str) -> Any:
    """What ``text`` holds. Raises ``ValueError``, also where it is nested too deeply to be read."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def is_draft_config(config: dict[str, Any]) -> bool:
    """Whether a config.json is that of a draft."""
    names = config.get("architectures")
    first = str(names[0]) if isinstance(names, list) and names else ""
    return "dflash_config" in config or "speculators_config" in config or first.startswith("DFlash")


def weight_files(folder: Path) -> list[Path]:
    """The checkpoint's safetensors, every file of its index included; ``ModelError`` where one is missing or cut short."""
    index = folder / "model.safetensors.index.json"
    if index.exists():
        try:
            names = sorted(set(parse_json(index.read_bytes())["weight_map"].values()))
            files = [folder / name for name in names]
        except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
            raise ModelError(f"{index} cannot be read ({error!r}): download the model again.") from error
    else:
        files = sorted(folder.glob("model*.safetensors"))
    if not files:
        raise ModelError(f"{folder} has no model.safetensors: download the model again.")
    for file in files:
        tensor_shapes(file)
    return files


def tensor_shapes(file: Path) -> dict[str, tuple[int, ...]]:
    """Names and shapes from the header of one safetensors file, after checking that all the data it promises is there."""
    return {name: tuple(entry["shape"]) for name, entry in _header(file).items()}


def tensor_items(file: Path) -> dict[str, tuple[str, int]]:
    """The type, as safetensors names it, and the number of items of each tensor; checked and raising as ``tensor_shapes``."""
    return {name: (entry["dtype"], math.prod(entry["shape"])) for name, entry in _header(file).items()}


def _header(file: Path) -> dict[str, dict[str, Any]]:
    try:
        found = file.stat()
        return _read_header(file, found.st_size, found.st_mtime_ns)
    except FileNotFoundError:
        raise ModelError(f"{file} is missing: download the model again.") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise ModelError(f"{file} is damaged or incomplete ({error}): download the model again.") from error


@lru_cache(maxsize=512)
def _read_header(file: Path, size: int, changed_ns: int) -> dict[str, dict[str, Any]]:
    """Loading a pair asks for the same header several times: it is read again only when the file has changed."""
    with file.open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        if length > min(size, MAX_HEADER_BYTES):
            raise ValueError("its header is longer than the file")
        header = parse_json(stream.read(length))
    header.pop("__metadata__", None)
    ends = [_checked_end(name, entry) for name, entry in header.items()]
    if 8 + length + max(ends, default=0) != size:
        raise ValueError(f"it has {size:,} bytes, its header promises {8 + length + max(ends, default=0):,}")
    return header


def _checked_end(name: str, entry: dict[str, Any]) -> int:
    begin, end = entry["data_offsets"]
    bits = ITEM_BITS.get(entry["dtype"])
    if bits is not None and (end - begin) * 8 != math.prod(entry["shape"]) * bits:
        raise ValueError(f"tensor {name} has the wrong number of bytes")
    return int(end)
