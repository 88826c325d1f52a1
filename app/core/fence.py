"""Puts any text into a Markdown code fence that the text itself cannot close."""

from __future__ import annotations

import re


def fenced(text: str) -> str:
    """``text`` without empty lines at its ends between two fences, longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    lines = text.strip("\n")
    return f"{fence}\n{lines}\n{fence}"
