"""The only module that touches AppKit: holds App Nap and sleep off while the engine works; a no-op elsewhere."""

from __future__ import annotations

import logging
import sys
from typing import Any

log = logging.getLogger(__name__)
IS_MAC = sys.platform == "darwin"
# NSActivityUserInitiated without the idle display sleep bit: the answer goes on, the screen may sleep.
_USER_INITIATED = 0x00FFFFFF


class Activity:
    """Tells macOS that work the user waits for is going on; ``hold(True)`` and ``hold(False)`` may repeat."""

    def __init__(self) -> None:
        self._token: Any = None

    def hold(self, working: bool) -> None:
        """Begins or ends the activity."""
        process = _process_info()
        if process is None or working == (self._token is not None):
            return
        if working:
            self._token = process.beginActivityWithOptions_reason_(_USER_INITIATED, "Answering a prompt or fetching a model")
        else:
            process.endActivity_(self._token)
            self._token = None


def _process_info() -> Any:
    if not IS_MAC:
        return None
    try:
        from Foundation import NSProcessInfo  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        log.info("pyobjc is not installed: App Nap may slow answers down in the background")
        return None
    return NSProcessInfo.processInfo()


def notify(title: str, text: str) -> bool:
    """Shows a notification in macOS's own way. False: there is no such way here."""
    centre = _notification_centre()
    if centre is None:
        return False
    from Foundation import NSUserNotification  # type: ignore[import-not-found, unused-ignore]

    # The older of macOS's two interfaces: it needs no question at the start, and pyobjc's Foundation has it.
    notification = NSUserNotification.alloc().init()
    notification.setTitle_(title)
    notification.setInformativeText_(text)
    centre.deliverNotification_(notification)
    return True


def _notification_centre() -> Any:
    """The centre, None on other systems, without pyobjc, and outside a bundle, which macOS gives none."""
    if not IS_MAC:
        return None
    try:
        from Foundation import NSUserNotificationCenter  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None
    return NSUserNotificationCenter.defaultUserNotificationCenter()
