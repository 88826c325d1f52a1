"""ggml-org/llama.cpp#25792, bstnxbt/dflash-mlx PR#15: a draft that was rarely right made answers slower, and nothing said so."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt

from app.ui import theme
from app.ui.meter_details import MeterDetails
from tests.gui.conftest import wait_ready


@pytest.mark.qt_log_ignore("This plugin does not support")
def test_the_meter_says_parked_gives_the_reason_and_drops_the_accent(qtbot, window, loader):
    loader.script.accepted_per_cycle, loader.script.parks_after = (1, 0, 0, 0, 0, 0, 0, 0, 0, 0), 10
    window.composer.set_text("Explain rainbows")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    assert window.meter.status.text() == "DFlash, parked" and window.meter.reason.isVisible()
    assert "right 10% of the time" in window.meter.reason.toolTip()
    shade = window.meter.figures["rate"].palette().color(window.meter.figures["rate"].foregroundRole())
    assert shade == theme.current().quiet
    qtbot.mouseClick(window.meter, Qt.MouseButton.LeftButton, pos=QPoint(4, 4))
    details = window.findChild(MeterDetails)
    assert details.state.text().startswith("Parked. Plain decoding is faster here")
    assert "10 cycles with a draft" in details.cycles.text() and "plain steps" in details.cycles.text()
    details.close()
