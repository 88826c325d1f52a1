"""How the prompt gets into the caches."""

from engine.kernels.blas import use_fast_blas

use_fast_blas()  # before anything in this room imports MLX
