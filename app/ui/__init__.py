"""Widgets only: no SQL, no threads."""
