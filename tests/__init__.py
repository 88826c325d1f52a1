"""Mirrors app/ and engine/; plus gui/, e2e/, regressions/ and perf/."""
