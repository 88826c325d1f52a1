"""Repacks GGUF blocks into MLX affine quantisation, value for value: nothing is rounded a second time.

A GGUF block of 32 values is ``scale * (q - zero)`` (Q4_0, Q5_0, Q8_0) or ``scale * q + minimum`` (Q4_1, Q5_1) with
16-bit floats. MLX computes ``scale * q + bias`` per group. With fp32 scales and biases both give the same fp32 number:
the products have at most 19 significant bits, so they are exact in either form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize
from numpy.typing import NDArray

GROUP_SIZE = 32


@dataclass(frozen=True, slots=True)
class _Layout:
    """A block: fp16 scale, fp16 minimum if it has one, 4 bytes of high bits if ``bits`` is 5, then the low bits."""

    bits: int
    has_minimum: bool
    zero: int


_LAYOUTS = {
    Type.Q4_0: _Layout(4, False, 8),
    Type.Q4_1: _Layout(4, True, 0),
    Type.Q5_0: _Layout(5, False, 16),
    Type.Q5_1: _Layout(5, True, 0),
    Type.Q8_0: _Layout(8, False, 128),
}


@dataclass(frozen=True, slots=True)
class Weight:
    """One tensor for MLX: dense fp32 ``weight``, or packed uint32 ``weight`` with fp32 ``scales`` and ``biases``.

    Shapes for a matrix of R rows and C columns: packed [R, C * bits / 32], scales and biases [R, C / 32].
    """

    weight: NDArray
    scales: NDArray | None = None
    biases: NDArray | None = None
    bits: int | None = None

    def rows(self, order: NDArray) -> Weight:
        """The same matrix with its rows in another order."""
        if self.scales is None or self.biases is None:
            return Weight(self.weight[order])
        return Weight(self.weight[order], self.scales[order], self.biases[order], self.bits)

    def named(self, module: str) -> dict[str, NDArray]:
        """The arrays under their names in a checkpoint. ``module`` has no ``.weight`` at its end."""
        arrays = {"weight": self.weight, "scales": self.scales, "biases": self.biases}
        return {f"{module}.{part}": np.ascontiguousarray(array) for part, array in arrays.items() if array is not None}


def convert(data: NDArray, kind: Type, quantised: bool = True) -> Weight:
    """Turns a GGUF tensor's ``data`` (uint8 rows of blocks, or floats) into arrays for MLX.

    Types without an exact affine form come out as dense fp32, and so does everything when ``quantised`` is False.
    Raises ``NotImplementedError`` for a type that the gguf package cannot dequantise.
    """
    layout = _LAYOUTS.get(kind) if quantised and data.ndim == 2 else None
    if layout is None:
        return Weight(np.array(dequantize(data, kind), dtype=np.float32))
    return _repack(np.ascontiguousarray(data), layout)


def _repack(data: NDArray, layout: _Layout) -> Weight:
    rows = data.shape[0]
    block_bytes = 2 + 2 * layout.has_minimum + 4 * (layout.bits == 5) + (32 if layout.bits == 8 else 16)
    blocks = data.reshape(rows, -1, block_bytes)
    scales = _fp16(blocks[..., 0:2])
    offset = 2
    if layout.has_minimum:
        biases = _fp16(blocks[..., 2:4])
        offset = 4
    else:
        biases = scales * np.float32(-layout.zero)
    return Weight(_pack(_values(blocks[..., offset:], layout.bits), layout.bits), scales, biases, layout.bits)


def _fp16(two_bytes: NDArray) -> NDArray:
    return np.ascontiguousarray(two_bytes).view(np.float16)[..., 0].astype(np.float32)


def _values(stored: NDArray, bits: int) -> NDArray:
    """The quantised values of each block, unsigned, in their order: [rows, columns] uint8."""
    rows = stored.shape[0]
    if bits == 8:
        return (stored ^ np.uint8(0x80)).reshape(rows, -1)  # int8 + 128
    low = stored[..., -16:]
    values = np.concatenate([low & np.uint8(0x0F), low >> np.uint8(4)], axis=-1)
    if bits == 5:
        values |= np.unpackbits(stored[..., :4], axis=-1, bitorder="little") << np.uint8(4)
    return values.reshape(rows, -1)


def _pack(values: NDArray, bits: int) -> NDArray:
    """MLX's packing: the values' bits one after the other, lowest first, cut into little-endian uint32."""
    if bits == 8:
        packed = values
    elif bits == 4:
        packed = values[:, 0::2] | (values[:, 1::2] << np.uint8(4))
    else:
        stream = np.unpackbits(values[..., None], axis=-1, count=bits, bitorder="little")
        packed = np.packbits(stream.reshape(values.shape[0], -1), axis=-1, bitorder="little")
    return np.ascontiguousarray(packed).view("<u4")
