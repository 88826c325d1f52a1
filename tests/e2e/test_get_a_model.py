"""A model from the hub to the first answer, by keyboard alone: search, get, pause, resume, chat, quit."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("drives an X11 screen", allow_module_level=True)

from engine.models import paths
from tests.e2e.running import Running, state_reached
from tests.e2e.x11 import User, screen
from tests.engine.bench.pairs import write_pair
from tests.hub_server import HubServer


def offer_pair(hub: HubServer, folder: Path, starter) -> int:
    """Puts a tiny random pair on the hub, and returns the bytes of its target's weights."""
    target, draft = write_pair(folder, starter).split("+")
    hub.add_folder("org/tiny", Path(target))
    hub.add_folder("org/tiny-DFlash", Path(draft))
    return len(hub.repositories["org/tiny"].files["model.safetensors"])


def test_a_model_is_found_paused_resumed_and_chatted_with(starter, tmp_path):
    models = {"SLIPSTREAM_HOME": str(paths.data_folder()), "HF_HOME": str(tmp_path / "hub home"), "HF_HUB_OFFLINE": ""}
    with HubServer() as hub, screen() as display:
        weights = offer_pair(hub, tmp_path / "pair", starter)
        hub.bytes_per_s = weights / 5
        user = User(display)
        running = Running(display, tmp_path / "data", HF_ENDPOINT=hub.address, **models)
        try:
            window = user.wait_for_window("Slipstream")
            running.wait(state_reached(running, "READY"), "loading the starter pair")
            user.click(window, -400, -110)  # no window manager gives it the keyboard
            use_the_models_window(user, running, hub, weights, tmp_path / "hub home")
            ask(user, running)
            user.press("Control_L", "q")
            assert running.process.wait(20) == 0 and running.process.stderr.read() == ""
        finally:
            running.close()
            user.close()


def use_the_models_window(user: User, running: Running, hub: HubServer, weights: int, cache: Path) -> None:
    user.press("Control_L", "Shift_L", "m")
    user.wait_for_window("Models")
    time.sleep(0.5)
    user.type("tiny")
    running.wait(lambda: hub.requests_for("search=tiny"), "asking the hub")
    time.sleep(1.0)  # the answer is on its way to the list
    user.press("Down")
    user.press("Return")  # get
    running.wait(lambda: hub.sent_bytes > weights // 3, "the first third")
    user.press("Return")  # pause
    running.wait(lambda: hub.transfers == 0, "pausing")
    at_rest = hub.sent_bytes
    time.sleep(0.5)
    assert hub.sent_bytes == at_rest < weights
    hub.bytes_per_s = None
    user.press("Return")  # resume
    running.wait(lambda: len(hub.requests_for("/blob?repository=org/tiny&file=model.safetensors", "store")) > 1, "resuming")
    running.wait(lambda: len(list(cache.rglob("snapshots/*/model.safetensors"))) == 2, "checking both models")
    time.sleep(1.0)  # listed
    assert hub.requests_for("/blob?repository=org/tiny&file=model.safetensors", "store")[-1].range is not None
    user.press("Return")  # chat
    running.wait(state_reached(running, "READY", 2), "loading the new pair")


def ask(user: User, running: Running) -> None:
    time.sleep(0.5)
    user.type("hello")
    user.press("Return")
    running.wait(lambda: running.trace("event", type="Cycle"), "an answer of the new pair")
    user.press("Escape")
    running.wait(lambda: running.trace("event", type="Finished"), "the end of the answer")
    finished = running.trace("event", type="Finished")[-1]
    assert finished["statistics"]["mode"] == "dflash" and finished["statistics"]["proposed"] > 0
