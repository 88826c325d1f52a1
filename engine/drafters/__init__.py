"""How a drafter proposes: one protocol, one package or file for each drafter."""

from engine.kernels.blas import use_fast_blas

use_fast_blas()  # before anything in this room imports MLX
