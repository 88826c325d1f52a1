"""Repacked blocks mean the same numbers to MLX as to the reference dequantiser."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest
from gguf import GGML_QUANT_SIZES
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize, quantize
from numpy.typing import NDArray

from engine.models.gguf_tensors import GROUP_SIZE, Weight, convert

PACKED = {Type.Q4_0: 4, Type.Q4_1: 4, Type.Q5_0: 5, Type.Q5_1: 5, Type.Q8_0: 8}


def random_blocks(kind: Type, rows: int, columns: int) -> NDArray:
    """Every bit pattern a block can hold; scales and minima of either sign, subnormal and zero among them."""
    random = np.random.default_rng(7)
    size, width = GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (rows, columns // size, width), dtype=np.uint8)
    halves = 2 if kind in (Type.Q4_1, Type.Q5_1) else 1
    scales = (random.standard_normal((rows, columns // size, halves)) * 0.05).astype(np.float16)
    scales[0, 0], scales[0, 1] = 0.0, 3e-7
    blocks[..., : 2 * halves] = scales.view(np.uint8)
    return blocks.reshape(rows, -1)


def in_mlx(weight: Weight) -> NDArray:
    assert weight.scales is not None and weight.biases is not None
    arrays = (mx.array(part) for part in (weight.weight, weight.scales, weight.biases))
    return np.array(mx.dequantize(*arrays, group_size=GROUP_SIZE, bits=weight.bits))


@pytest.mark.parametrize("kind", PACKED, ids=lambda kind: kind.name)
def test_repacked_blocks_dequantise_to_the_same_fp32_numbers(kind: Type) -> None:
    data = random_blocks(kind, rows=24, columns=160)
    weight = convert(data, kind)
    assert (weight.bits, weight.weight.dtype) == (PACKED[kind], np.uint32)
    assert weight.scales is not None and weight.scales.dtype == np.float32 and weight.scales.shape == (24, 5)
    result, reference = in_mlx(weight), dequantize(data, kind)
    assert result.dtype == np.float32
    assert np.ptp(reference) > 0
    # Equal as numbers; only the sign of a zero may differ (a negative scale times nothing).
    np.testing.assert_array_equal(result, reference)


@pytest.mark.parametrize("kind", [Type.F32, Type.F16, Type.BF16, Type.Q6_K], ids=lambda kind: kind.name)
def test_types_without_an_exact_affine_form_come_out_dense(kind: Type) -> None:
    random = np.random.default_rng(1)
    if kind == Type.Q6_K:  # the reference only reads this one
        data = random.integers(0, 256, (4, GGML_QUANT_SIZES[kind][1]), dtype=np.uint8)
        data[:, -2:] = np.full((4, 1), 0.01, np.float16).view(np.uint8)
    else:
        data = quantize(random.standard_normal((4, 64), dtype=np.float32), kind)
    weight = convert(data, kind)
    assert (weight.bits, weight.scales, weight.weight.dtype) == (None, None, np.float32)
    np.testing.assert_array_equal(weight.weight, dequantize(data, kind))


def test_a_type_nobody_can_read_is_refused() -> None:
    with pytest.raises(NotImplementedError):
        convert(np.zeros((1, 32), np.int32), Type.I32)


def test_rows_are_reordered_with_their_scales_and_biases() -> None:
    data = random_blocks(Type.Q4_1, rows=6, columns=64)
    order = np.array([3, 1, 5, 0, 2, 4])
    np.testing.assert_array_equal(in_mlx(convert(data, Type.Q4_1).rows(order)), dequantize(data, Type.Q4_1)[order])
