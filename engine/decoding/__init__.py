"""The loops: plain and speculative decoding, the acceptance rule, sampling and statistics."""

from engine.kernels.blas import use_fast_blas

use_fast_blas()  # before anything in this room imports MLX
