"""Benchmarks. Importing the engine first opens the fast BLAS before any of them imports MLX."""

import engine as engine
