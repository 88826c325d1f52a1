"""How a target family runs: one protocol, one file for each kind of family."""

from engine.kernels.blas import use_fast_blas

use_fast_blas()  # before anything in this room imports MLX
