"""Benchmarks of a pair: both modes on the same prompts, in one run."""
