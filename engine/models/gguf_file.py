"""Opens a GGUF file and reads typed metadata, with errors that name the file and the key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from gguf import GGMLQuantizationType, GGUFReader
from numpy.typing import NDArray

from engine.errors import ModelError

T = TypeVar("T")
_MISSING: Any = object()


class GgufFile:
    """A GGUF file, mapped into memory. Raises ``ModelError`` where it cannot be read or is cut off."""

    def __init__(self, path: Path):
        self.path = path
        if not path.is_file():
            raise ModelError(f"{path} is not there: check the path of the GGUF file.")
        try:
            self._reader = GGUFReader(path)
        except OSError as error:
            raise ModelError(f"{path} cannot be read: {error.strerror or error}.") from error
        except Exception as error:  # the reader meets a cut-off or foreign file with whatever its arithmetic trips over
            raise ModelError(f"{path} is not a complete GGUF file: download it again.") from error

    def get(self, key: str, kind: type[T], default: Any = _MISSING) -> T:
        """The value of ``key``, checked to be a ``kind`` (int, float, str, bool or list). Raises ``ModelError``."""
        field = self._reader.get_field(key)
        if field is None:
            if default is _MISSING:
                raise ModelError(f"{self.path.name} has no {key}: it cannot be imported.")
            return default
        value = field.contents()
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ModelError(f"{self.path.name} has a {key} of the wrong type: it cannot be imported.")
        return value

    def has(self, key: str) -> bool:
        return self._reader.get_field(key) is not None

    @property
    def tensor_count(self) -> int:
        return len(self._reader.tensors)

    def tensors(self) -> Iterator[tuple[str, NDArray, GGMLQuantizationType, tuple[int, ...]]]:
        """Name, raw data, type and logical shape (rows first) of every tensor."""
        for tensor in self._reader.tensors:
            yield tensor.name, tensor.data, tensor.tensor_type, tuple(int(n) for n in reversed(tensor.shape))
