"""Why the system refused a file is said in the user's language."""

from __future__ import annotations

import errno
import os
from importlib.resources import files
from pathlib import Path

import pytest

from app.core import words
from app.core.os_words import REASONS, reason


@pytest.mark.parametrize("number", REASONS)
def test_a_common_reason_is_said_in_german(number):
    words.use_language("de", Path(str(files("resources") / "locale")))
    try:
        assert reason(OSError(number, os.strerror(number))) not in ("", REASONS[number], os.strerror(number))
    finally:
        words.use_language("en", Path())


def test_a_rare_one_is_the_system_s_own():
    assert reason(OSError(errno.EXDEV, "Invalid cross-device link")) == "Invalid cross-device link"
    assert reason(BlockingIOError()) == "BlockingIOError"
