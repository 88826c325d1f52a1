"""Builds and checks Slipstream.app: settings, lock, assembly, linter, icons, update feed. Run as ``python -m bundle.NAME``."""
