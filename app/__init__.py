"""The desktop program. Never imports MLX."""
