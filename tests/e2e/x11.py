"""A screen of its own and a user's hands: starts Xvfb, finds windows, presses real keys and clicks real buttons."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from Xlib import XK, X
from Xlib.display import Display
from Xlib.ext import xtest

NAMES = {" ": "space", "\n": "Return", ".": "period", ",": "comma", "-": "minus", "?": "question", "'": "apostrophe"}


@contextmanager
def screen() -> Iterator[str]:
    """Runs Xvfb on a free display number and yields its name, like ":3"."""
    reader, writer = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writer), "-screen", "0", "1280x860x24", "-nolisten", "tcp"],
        pass_fds=(writer,), stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(writer)
    try:
        with os.fdopen(reader) as answer:
            number = answer.readline().strip()
        assert number, "Xvfb did not start"
        yield f":{number}"
    finally:
        server.terminate()
        server.wait(10)


class User:
    """Presses keys and moves the mouse on one display."""

    def __init__(self, display: str):
        self._display = Display(display)
        self._root = self._display.screen().root

    def close(self) -> None:
        self._display.close()

    def wait_for_window(self, title: str, limit_s: float = 60.0):
        """The top-level window whose title contains ``title``, once it is on the screen."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            for window in self._root.query_tree().children:
                if title in (window.get_wm_name() or "") and window.get_attributes().map_state == X.IsViewable:
                    return window
            time.sleep(0.1)
        raise AssertionError(f"no window called {title!r} within {limit_s:.0f} s")

    def click(self, window, x: int, y: int) -> None:
        """Clicks at a place inside ``window``; negative values count from its far side."""
        frame = window.get_geometry()
        place = window.translate_coords(self._root, 0, 0)
        x, y = (x if x >= 0 else frame.width + x), (y if y >= 0 else frame.height + y)
        xtest.fake_input(self._display, X.MotionNotify, x=x - place.x, y=y - place.y)
        for kind in (X.ButtonPress, X.ButtonRelease):
            xtest.fake_input(self._display, kind, 1)
        self._display.sync()
        time.sleep(0.2)

    def press(self, *keys: str) -> None:
        """Presses keys together, like ``press("Control_L", "n")``."""
        codes = [self._display.keysym_to_keycode(XK.string_to_keysym(key)) for key in keys]
        for code in codes:
            xtest.fake_input(self._display, X.KeyPress, code)
        for code in reversed(codes):
            xtest.fake_input(self._display, X.KeyRelease, code)
        self._display.sync()
        time.sleep(0.02)

    def type(self, text: str) -> None:
        """Types ``text`` key by key."""
        for char in text:
            shifted = char.isupper() or char == "?"
            key = NAMES.get(char, char)
            self.press(*(("Shift_L", key) if shifted else (key,)))
