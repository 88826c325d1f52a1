"""DFlash: a block-diffusion draft that reads the target's residual streams and proposes a whole block in one pass."""
