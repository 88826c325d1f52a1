"""What is copied of our own faults names code and versions, and quotes nothing of a chat."""

from __future__ import annotations

import traceback

from app.core.failure_details import failure_details, places
from tests.app.core.recordings import PAIR


def fail(secret: str) -> str:
    try:
        int(secret)
    except ValueError:
        try:
            raise RuntimeError(f"while reading {secret}\n{secret}: Error") from None
        except RuntimeError:
            return traceback.format_exc()
    return ""


def test_files_functions_and_the_kind_of_error_stay_and_its_words_go():
    kept = places(fail("my secret diary"))
    assert kept[-1] == "RuntimeError" and any("test_failure_details.py" in line and "fail" in line for line in kept)
    assert "secret" not in "\n".join(kept)


def test_errors_that_look_like_more_of_a_traceback_do_not_get_through():
    kept = "\n".join(places(fail("diary: KeyError: my diary\n    print(diary)")))
    assert "my diary" not in kept and "print" not in kept


def test_what_lies_above_the_program_s_own_folders_is_left_out():
    text = '  File "/Volumes/x/app/ui/banner.py", line 3, in show\n  File "/Volumes/y/site-packages/mlx/core.py", line 9, in run\n'
    assert places(text) == ["  app/ui/banner.py:3 show", "  mlx/core.py:9 run"]


def test_a_hard_fault_s_dump_is_kept():
    dump = 'Fatal Python error: Aborted\n\nCurrent thread 0x00007f (most recent call first):\n  File "/engine/x.py", line 1 in f\n'
    assert places(dump)[:2] == ["Fatal Python error: Aborted", "Current thread 0x00007f (most recent call first):"]


def test_versions_and_model_stand_above():
    text = failure_details("The engine failed.", fail("x"), {"mlx": "0.32.4"}, PAIR)
    assert text.startswith("Slipstream ") and "mlx: 0.32.4" in text and "model: Starter, llama, cpu, float32" in text
