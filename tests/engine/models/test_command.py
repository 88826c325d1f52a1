"""``slipstream models``: list, search, add, verify, remove and import, with the exit codes that scripts rely on."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from gguf import GGMLQuantizationType as Type

from engine.cli import main
from engine.models import Downloader, Progress, import_gguf, installed, list_downloads, plan_download, resolve_pair
from engine.models.command import progress_words
from engine.models.paths import models_folder
from tests.engine.models.tiny_gguf import write_gguf
from tests.hub_server import HubServer
from tests.remote_models import QWEN3, add_model

MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down", "token_embd")


@pytest.fixture
def run(hub: HubServer, capsys: pytest.CaptureFixture[str]):
    """Runs the verb and returns exit code, standard output and standard error."""

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(["models", *arguments])
        return code, *capsys.readouterr()

    return command


@pytest.fixture
def runnable(hub: HubServer, tmp_path: Path) -> Path:
    """The folder of a model of 0.3 MB that really runs, which the hub has as org/model."""
    gguf = write_gguf(tmp_path / "tiny.gguf", dict.fromkeys(MATRICES, Type.F32))
    folder = import_gguf(gguf, tmp_path / "runnable")
    hub.add_folder("org/model", folder)
    return folder


def test_a_model_is_added_listed_verified_and_removed(runnable: Path, run) -> None:
    code, out, err = run("add", "org/model")
    assert code == 0 and "org/model is ready" in out and "runs with lookup" in err
    listed = next(line for line in run("list")[1].splitlines() if line.startswith("org/model"))
    assert "ready" in listed and "hub cache" in listed
    assert run("verify", "org/model") == (0, "org/model: every file is whole\n", "")
    code, out, _ = run("remove", "org/model")
    assert code == 0 and "0.3 MB are free again" in out and installed() == []
    code, out, err = run("remove", "org/model")
    assert (code, out) == (1, "") and err == "slipstream: org/model is not on this machine: there is nothing to delete.\n"


def test_the_list_as_json_holds_pairs_models_and_downloads(hub: HubServer, run) -> None:
    add_model(hub, "org/model")
    Downloader(plan_download("org/model", with_draft=False)).run()
    code, out, _ = run("list", "--json")
    record = json.loads(out)
    assert code == 0 and record["pairs"][0]["id"] == "starter"
    assert {pair["fits"]["verdict"] for pair in record["pairs"]} <= {"fits", "tight", "no"}
    assert [(model["id"], model["state"]) for model in record["installed"]] == [("org/model", "ready")]
    assert record["downloads"] == []


def test_a_damaged_model_fails_with_the_command_that_repairs_it(runnable: Path, run) -> None:
    run("add", "org/model")
    (resolve_pair("org/model").target / "model.safetensors").resolve().write_bytes(b"x")
    code, out, err = run("verify", "org/model")
    assert (code, out) == (1, "")
    assert err == (
        "slipstream: org/model is damaged (model.safetensors): run `slipstream models verify org/model --repair`.\n"
    )
    assert run("verify", "org/model", "--repair")[:2] == (
        0, "org/model is ready: slipstream generate --model org/model --prompt ...\n"
    )  # fmt: skip
    assert run("verify", "org/model")[0] == 0
    assert run("verify", "org/model", "--repair")[1] == "org/model: every file is whole\n"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"model_type": "exotic"}, "of the family 'exotic', which mlx-lm"),
        ({"model_file": "its_own.py"}, "needs program code of its own (its_own.py)"),
        ({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}, "8-bit floats (fp8)"),
        ({"quantization_config": {"quant_method": "bitsandbytes"}}, "stored as bitsandbytes"),
        ({"architectures": ["Eagle3DraftModel"], "dflash_config": {}}, "a draft of kind EAGLE-3"),
    ],
    ids=["family", "own code", "fp8", "bitsandbytes", "another kind of draft"],
)
def test_what_cannot_run_is_refused_by_its_config_before_its_weights_are_fetched(hub: HubServer, run, config, words) -> None:
    add_model(hub, "org/model", config=QWEN3 | config)
    code, out, err = run("add", "org/model")
    assert (code, out) == (1, "") and err.count("\n") == 1 and words in err and ": " in err.partition(words)[2]
    assert not hub.requests_for("safetensors") and list_downloads() == []


def test_a_draft_that_cannot_be_used_is_refused_before_anything_is_fetched(hub: HubServer, runnable: Path, run) -> None:
    add_model(hub, "org/draft", config=QWEN3 | {"architectures": ["Eagle3DraftModel"], "dflash_config": {}})
    code, out, err = run("add", "org/model+org/draft")
    assert (code, out) == (1, "") and "org/draft is a draft of kind EAGLE-3" in err and not hub.requests_for("safetensors")


def test_a_fetched_model_whose_weights_do_not_belong_to_its_config_is_not_called_ready(hub: HubServer, run) -> None:
    whole = QWEN3 | {"rms_norm_eps": 1e-6, "tie_word_embeddings": True, "rope_theta": 1e6}
    add_model(hub, "org/model", config=whole)  # its only tensor is one that no model has
    code, out, err = run("add", "org/model")
    assert (code, out) == (1, "") and "do not belong to its config.json" in err.splitlines()[-1]


def test_a_folder_is_checked_in_place(runnable: Path, run) -> None:
    assert run("add", str(runnable)) == (0, f"{runnable} is ready: slipstream generate --model {runnable} --prompt ...\n", "")
    code, out, err = run("add", f"{runnable}+{runnable}")
    assert (code, out) == (1, "") and "is not a DFlash draft" in err
    config = json.loads((runnable / "config.json").read_text())
    (runnable / "config.json").write_text(json.dumps(config | {"model_type": "exotic"}))
    code, out, err = run("add", str(runnable))
    assert (code, out) == (1, "") and "'exotic'" in err


def test_a_model_of_an_unknown_family_is_listed_as_one_that_does_not_run(runnable: Path, run) -> None:
    config = json.loads((runnable / "config.json").read_text())
    (runnable / "config.json").write_text(json.dumps(config | {"model_type": "exotic"}))
    models_folder().mkdir(parents=True)
    runnable.rename(models_folder() / "mine")
    assert [(model.state, "'exotic'" in model.problem) for model in installed()] == [("unsupported", True)]
    assert "unsupported" in run("list")[1]


def test_a_search_lists_what_was_found(hub: HubServer, run) -> None:
    add_model(hub, "org/thing", downloads=3)
    code, out, _ = run("search", "thing")
    assert code == 0 and "org/thing" in out and "qwen3" in out and "no draft known" in out
    assert json.loads(run("search", "thing", "--json")[1])[0]["repository"] == "org/thing"
    assert "no model named like" in run("search", "nothing")[2]
    assert run("search", "thing", "--limit", "0")[0] == 2


@pytest.mark.parametrize(("arguments", "code"), [
    (("add", "nonsense"), 2), (("add", "org/none"), 1), (("remove", "nonsense"), 2), (("remove", "starter"), 1),
    (("verify", "org/none"), 1), (("import-gguf", "none.gguf", "folder"), 1),
])  # fmt: skip
def test_errors_are_one_line_with_the_right_code(hub: HubServer, run, arguments: tuple[str, ...], code: int) -> None:
    found, out, err = run(*arguments)
    assert (found, out) == (code, "") and err.startswith("slipstream: ") and err.count("\n") == 1


def test_ctrl_c_pauses_and_says_how_to_go_on(hub: HubServer, runnable: Path, run) -> None:
    hub.held = 0.75
    child = subprocess.Popen([sys.executable, "-m", "app", "models", "add", "org/model"], stderr=subprocess.PIPE, text=True)
    while hub.sent_bytes < 100_000:
        time.sleep(0.01)
        assert child.poll() is None
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 1
    assert "Paused at 0." in err and "`slipstream models add org/model` goes on from there." in err and "Traceback" not in err
    (state,) = list_downloads()
    line = next(line for line in run("list")[1].splitlines() if line.startswith("org/model"))
    assert "paused" in line
    hub.held = None
    hub.seen.clear()
    assert run("add", "org/model")[0] == 0
    assert [seen.range for seen in hub.requests_for("model.safetensors", "store")] == [f"bytes={part_bytes(state)}-"]


def part_bytes(state) -> int:
    """What is here of the weights: the small files are whole."""
    return state.done_bytes - sum(file.size for file in state.plan.files if not file.path.endswith(".safetensors"))


def test_an_unfinished_download_can_be_removed(hub: HubServer, run) -> None:
    add_model(hub, "org/model")
    hub.bytes_per_s = 300_000
    pause = threading.Event()
    plan = plan_download("org/model", with_draft=False)
    Downloader(plan, pause=pause, on_progress=lambda progress: pause.set() if progress.done > 50_000 else None).run()
    code, out, _ = run("remove", "org/model")
    assert code == 0 and "MB are free again" in out and list_downloads() == []


def test_a_terminal_sees_progress(hub: HubServer, runnable: Path) -> None:
    hub.bytes_per_s = 300_000
    master, slave = pty.openpty()
    child = subprocess.Popen([sys.executable, "-m", "app", "models", "add", "org/model"], stderr=slave, stdout=subprocess.DEVNULL)
    os.close(slave)
    shown = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:  # how a terminal ends on Linux
            break
        if not piece:
            break
        shown += piece
    assert child.wait(30) == 0
    os.close(master)
    assert b" of 0.3 MB" in shown and b"/s" in shown and b"s left" in shown


def test_progress_says_what_is_waited_for() -> None:
    progress = Progress(1_500_000_000, 9_100_000_000, 25_000_000.0, 304.0, "a")
    assert progress_words(progress) == "1.5 GB of 9.1 GB · 25 MB/s · 5 min 4 s left"
    waiting = Progress(0, 9_100_000_000, 0.0, None, "a", "retrying", "the hub cannot be reached: trying again in 4 s")
    assert progress_words(waiting) == "0.0 MB of 9.1 GB · the hub cannot be reached: trying again in 4 s"


def test_a_gguf_is_imported_and_listed(hub: HubServer, run, tmp_path: Path) -> None:
    code, out, _ = run("import-gguf", str(write_gguf(tmp_path / "tiny.gguf")), str(models_folder() / "mine"))
    assert code == 0 and "is ready" in out
    assert [model.path.name for model in installed()] == ["mine"]
