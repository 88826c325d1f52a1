"""Finds names by some of their letters, as one types them in a hurry."""

from __future__ import annotations


def fuzzy_score(typed: str, name: str) -> int | None:
    """How well ``name`` fits what was typed, higher is better; None where its letters are not all there in their order.

    Letters at the start of words and letters in a row count more; of two that fit alike the shorter name is better.
    """
    wanted, text = "".join(typed.casefold().split()), name.casefold()
    if not wanted:
        return 0
    starts = {index for index, char in enumerate(text) if char.isalnum() and (index == 0 or not text[index - 1].isalnum())}
    # best[index]: the best score with the letters so far matched and the last of them at ``index``
    best: dict[int, int] = {}
    for place, letter in enumerate(wanted):
        found: dict[int, int] = {}
        reached = 0  # the best of ``best`` before ``index``
        for index, char in enumerate(text):
            if char == letter and (place == 0 or reached or index - 1 in best):
                before = 0 if place == 0 else max(reached, best.get(index - 1, 0) + 6 if index - 1 in best else 0)
                found[index] = before + 1 + (8 if index in starts else 0)
            reached = max(reached, best.get(index, 0))
        if not found:
            return None
        best = found
    return max(best.values()) * 100 - len(text)
