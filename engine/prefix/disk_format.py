"""The bytes of one segment's file: a checked preamble, a header with the token ids, and the arrays.

    preamble    magic, format version, header and token lengths, payload length, checksums of header, payload and preamble itself
    header      JSON (parent, start, name, dtype, shape and offset of every array), then the token ids as little-endian int32
    payload     the arrays, each at a multiple of ``ALIGN`` bytes from the payload's start

The checksums are CRC-32: they are there against bit rot and torn writes, not against attackers, and cost 0.15 s a gigabyte.
"""

from __future__ import annotations

import json
import math
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

from engine.prefix.segment import Segment, segment_key

MAGIC = b"SLIPSEG\n"
VERSION = 1
PREAMBLE = struct.Struct("<8sIIIQIII")  # magic, version, JSON bytes, token count, payload bytes, CRCs: header, payload, preamble
ALIGN = 64
CHUNK = 2**20
MAX_HEADER = 2**26  # bytes; a header of this size would be for a stretch of millions of tokens

# How each dtype lies on disk; bfloat16, which NumPy does not know, as the 16 bits it is.
_DTYPES = {
    **{f"{kind}{bits}": f"<{kind[0]}{bits // 8}" for kind in ("uint", "int") for bits in (8, 16, 32, 64)},
    "float16": "<f2",
    "float32": "<f4",
    "float64": "<f8",
    "bfloat16": "<u2",
    "complex64": "<c8",
    "bool": "?",
}


class Damaged(ValueError):
    """The file does not hold what its name says; the text says why."""


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of a segment without its arrays. ``tokens``: its n ids as little-endian int32; ``boundary``: it has state."""

    key: str
    parent: str
    start: int
    tokens: bytes
    boundary: bool

    @property
    def count(self) -> int:
        return len(self.tokens) // 4


@dataclass(frozen=True, slots=True)
class Prepared:
    """A segment ready to be written without any MLX operation. ``arrays`` share the segment's memory; ``nbytes``: of the file."""

    record: Record
    header: bytes
    arrays: tuple[np.ndarray, ...]
    nbytes: int


def prepare(segment: Segment) -> Prepared:
    """Views of a segment's arrays and its header. Call on the thread that owns MLX; copies nothing."""
    arrays: list[np.ndarray] = []
    layout: dict[str, list[list[Any]]] = {"rows": [], "state": []}
    offset = 0
    for part, entries in layout.items():
        for name, array in getattr(segment, part).items():
            entries.append([name, _dtype_name(array.dtype), list(array.shape), offset])
            arrays.append(np.array(array.view(mx.uint16) if array.dtype == mx.bfloat16 else array, copy=False))
            offset += _aligned(array.nbytes)
    tokens = np.asarray(segment.token_ids, dtype="<i4").tobytes()
    text = json.dumps({"parent": segment.parent, "start": segment.start, **layout}).encode()
    record = Record(segment.key, segment.parent, segment.start, tokens, bool(segment.state))
    return Prepared(record, text + tokens, tuple(arrays), PREAMBLE.size + len(text) + len(tokens) + offset)


def write_prepared(descriptor: int, prepared: Prepared, pause: Callable[[], None]) -> None:
    """Writes the whole file; ``pause`` is called after every chunk and may raise to give up. Raises ``OSError``."""
    os.lseek(descriptor, PREAMBLE.size, os.SEEK_SET)
    write_all(descriptor, prepared.header)
    checksum = size = 0
    for array in prepared.arrays:
        for chunk in chain(_chunks(array), [memoryview(bytes(_aligned(array.nbytes) - array.nbytes))]):
            checksum = zlib.crc32(chunk, checksum)
            write_all(descriptor, chunk)
            size += len(chunk)
            pause()
    tokens = prepared.record.count
    fields = (MAGIC, VERSION, len(prepared.header) - 4 * tokens, tokens, size, zlib.crc32(prepared.header), checksum)
    # Last of all, so that a file cut short anywhere has no valid beginning.
    os.lseek(descriptor, 0, os.SEEK_SET)
    write_all(descriptor, PREAMBLE.pack(*fields, zlib.crc32(PREAMBLE.pack(*fields, 0)[:-4])))


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Writes all of ``data`` where the descriptor stands. Raises ``OSError``."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def read_record(path: Path) -> Record:
    """The record of the file at ``path``; its payload is not looked at. Raises ``Damaged`` and ``OSError``."""
    with _open(path) as file:
        return _read_header(file, path).record


def read_segment(path: Path) -> Segment:
    """The segment in the file at ``path``, arrays evaluated, checksums compared. Raises ``Damaged`` and ``OSError``."""
    with _open(path) as file:
        header = _read_header(file, path)
        payload = np.empty(header.payload_bytes, dtype=np.uint8)
        if file.readinto(payload.data) != header.payload_bytes or zlib.crc32(payload.data) != header.payload_checksum:
            raise Damaged("its arrays are damaged")
    rows, state = ({name: _array(payload, *place) for name, *place in header.layout[part]} for part in ("rows", "state"))
    mx.eval(rows, state)
    record = header.record
    return Segment(record.parent, record.start, tuple(np.frombuffer(record.tokens, dtype="<i4").tolist()), rows, state)


@dataclass(frozen=True, slots=True)
class _Header:
    record: Record
    layout: dict[str, list[list[Any]]]
    payload_bytes: int
    payload_checksum: int


def _read_header(file: BufferedReader, path: Path) -> _Header:
    first = file.read(PREAMBLE.size)
    if len(first) < PREAMBLE.size or not first.startswith(MAGIC):
        raise Damaged("it is not a stored prefix")
    _, version, json_bytes, tokens, payload_bytes, checksum, payload_checksum, own = PREAMBLE.unpack(first)
    if version != VERSION:
        raise Damaged(f"it has format {version}, not {VERSION}")
    length = json_bytes + 4 * tokens
    if zlib.crc32(first[:-4]) != own or os.fstat(file.fileno()).st_size != PREAMBLE.size + length + payload_bytes:
        raise Damaged("its length or its preamble is wrong")
    header = file.read(length) if length <= MAX_HEADER else b""
    if len(header) != length or zlib.crc32(header) != checksum:
        raise Damaged("its header is damaged")
    try:
        fields = json.loads(header[:json_bytes])
        ids = header[json_bytes:]
        record = Record(path.stem, fields["parent"], fields["start"], ids, bool(fields["state"]))
        layout = {part: fields[part] for part in ("rows", "state")}
        named = segment_key(record.parent, np.frombuffer(ids, dtype="<i4").tolist()) == path.stem and len(record.parent) == 64
        held = all(_fits(entry, payload_bytes) for entry in layout["rows"] + layout["state"])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise Damaged(f"its header cannot be understood ({error})") from error
    if not named or not isinstance(record.start, int) or not 0 <= record.start < 2**31:
        raise Damaged("its name is not that of its content")
    if not held:
        raise Damaged("its header names more than it holds")
    return _Header(record, layout, payload_bytes, payload_checksum)


def _fits(entry: list[Any], payload_bytes: int) -> bool:
    """Whether an array of the header lies within the payload; nothing is allocated for one that does not."""
    name, dtype, shape, offset = entry
    sizes = all(isinstance(size, int) and size >= 0 for size in (*shape, offset))
    size = math.prod(shape) * np.dtype(_DTYPES[dtype]).itemsize if sizes else 0
    return sizes and isinstance(name, str) and offset + size <= payload_bytes


def _array(payload: np.ndarray, dtype: str, shape: list[int], offset: int) -> mx.array:
    stored = np.dtype(_DTYPES[dtype])
    flat = payload[offset : offset + math.prod(shape) * stored.itemsize].view(stored)
    if dtype == "bfloat16":
        return mx.array(flat.reshape(shape)).view(mx.bfloat16)
    return mx.array(flat.reshape(shape), dtype=mx.bool_ if dtype == "bool" else getattr(mx, dtype))


def _dtype_name(dtype: mx.Dtype) -> str:
    return str(dtype).removeprefix("mlx.core.").rstrip("_")


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGN) * ALIGN


def _chunks(array: np.ndarray) -> Iterator[memoryview]:
    """The array's bytes in row-major order; a strided one is copied a few rows at a time."""
    if array.size and not array.flags.c_contiguous:
        rows = max(1, CHUNK * len(array) // array.nbytes)
        for row in range(0, len(array), rows):
            yield from _chunks(np.ascontiguousarray(array[row : row + rows]))
        return
    flat = array.reshape(-1).view(np.uint8)
    for offset in range(0, len(flat), CHUNK):
        yield flat[offset : offset + CHUNK].data


def _open(path: Path) -> BufferedReader:
    """The file at ``path``: links are not followed and a pipe does not wait for its other end."""
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK))
