"""Reads a large JSON object in many small steps: the elements of chosen lists one by one."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from typing import Any

Lists = dict[str, "Lists"]  # keys whose lists are read element by element, each with the same of its elements' keys
Steps = Generator[int, None, tuple[Any, int]]
_SPACE = re.compile(r"[ \t\n\r]*")
_decode = json.JSONDecoder().raw_decode


def read_object(text: str, lists: Lists) -> Generator[int, None, dict[str, Any]]:
    """The object that ``text`` holds; yields how many characters were read. Raises ``ValueError`` for anything else."""
    value, end = yield from _object(text, _after_space(text, 0), lists)
    if _after_space(text, end) != len(text):
        raise ValueError("more than one value")
    return value


def _object(text: str, start: int, lists: Lists) -> Steps:
    result: dict[str, Any] = {}
    place = _after_space(text, _after(text, start, "{"))
    while not text.startswith("}", place):
        if result:
            place = _after_space(text, _after(text, place, ","))
        key, place = _decode(text, place)
        if not isinstance(key, str):
            raise ValueError("a key that is no text")
        place = _after_space(text, _after(text, _after_space(text, place), ":"))
        if key in lists and text.startswith("[", place):
            result[key], place = yield from _list(text, place, lists[key])
        else:
            result[key], place = _decode(text, place)
        place = _after_space(text, place)
    return result, place + 1


def _list(text: str, start: int, lists: Lists) -> Steps:
    result: list[Any] = []
    place = _after_space(text, start + 1)
    while not text.startswith("]", place):
        if result:
            place = _after_space(text, _after(text, place, ","))
        element, place = (yield from _object(text, place, lists)) if lists else _decode(text, place)
        result.append(element)
        place = _after_space(text, place)
        yield place
    return result, place + 1


def _after(text: str, place: int, char: str) -> int:
    if not text.startswith(char, place):
        raise ValueError(f"no {char} where it has to be")
    return place + 1


def _after_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    assert found is not None
    return found.end()
