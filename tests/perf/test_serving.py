"""How smooth the window stays while it starts to serve, streams for other programs and lists their requests (-s prints numbers)."""

from __future__ import annotations

import threading
import time

import httpx2
import pytest

from app.services.server import ServerState
from tests.gui.conftest import load
from tests.gui.serving import PATIENCE_S, ask, free_port
from tests.perf.test_ui_streaming import RATE, STALL_BOUND_S, WORK_BOUND_S, Heartbeat

pytestmark = [pytest.mark.qt_log_ignore("This plugin does not support"), pytest.mark.usefixtures("keychain")]
SECONDS, LOOKS_A_SECOND = 4.0, 50


def test_the_window_stays_smooth_while_other_programs_ask(qtbot, window, loader, others):
    loader.script.rate, loader.script.tokens = RATE, int(SECONDS * RATE / 4)
    services = window.services
    load(qtbot, services.client)
    services.settings.update(server_port=free_port())
    window.do.show_settings(server=True)
    qtbot.wait(300)
    heartbeat = Heartbeat()
    services.server.start()
    qtbot.waitUntil(lambda: services.server.state is ServerState.ON, timeout=20_000)
    over = threading.Event()

    def look() -> int:
        looks = 0
        with httpx2.Client(timeout=PATIENCE_S, trust_env=False) as http:
            while not over.is_set():
                looks += http.get(f"{services.server.url}/models").status_code == 200
                time.sleep(1 / LOOKS_A_SECOND)
        return looks

    looking = others.submit(look)
    asked = [others.submit(ask(services, max_tokens=loader.script.tokens)) for _ in range(4)]
    qtbot.waitUntil(lambda: all(each.done() for each in asked), timeout=60_000)
    over.set()
    qtbot.waitUntil(looking.done, timeout=20_000)
    services.server.stop()
    qtbot.waitUntil(lambda: services.server.state is ServerState.OFF, timeout=20_000)
    gaps = heartbeat.stop()
    walls, works = sorted(wall for wall, _work in gaps), max(work for _wall, work in gaps)
    print(
        f"\n{len(asked)} answers and {looking.result()} looks: longest stall {walls[-1] * 1e3:.0f} ms, longest own work "
        f"{works * 1e3:.0f} ms, {sum(wall > 0.05 for wall in walls)} over 50 ms"
    )
    assert all(each.result().usage.completion_tokens == loader.script.tokens for each in asked)
    assert works < WORK_BOUND_S and walls[-1] < STALL_BOUND_S
