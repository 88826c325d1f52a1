"""The engine's sentences reach the user in the user's language; what is not known stays as it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.core.engine_sentences import IN_WINDOW, SENTENCES
from app.core.engine_words import engine_words
from app.core.words import unbroken, use_language
from engine import ContextFull, ContextOverflow, RequestError, Trimmed
from engine.draft_check import FirstGuesses
from engine.errors import ModelError, NotEnoughMemory
from engine.models.checkpoint import Config
from engine.models.gguf_file import GgufFile
from engine.models.runnable import refusal
from engine.request import GenerationRequest, Message

ROOT = Path(__file__).parents[3]
CUTS = re.compile(r"\{\w+\}|: |; |, and |, of which|in some minutes|(?<=again) in ")  # where the engine joins its pieces
LOCALE = ROOT / "resources" / "locale"


@pytest.fixture
def german() -> Iterator[None]:
    use_language("de", LOCALE)
    yield
    use_language("en", LOCALE)


def engine_texts() -> str:
    """Every literal of the engine and of its thread, pieces of one f-string apart."""
    found = []
    for path in [*(ROOT / "engine").rglob("*.py"), ROOT / "app/worker.py", ROOT / "app/core/meter.py"]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return "\n".join(found)


def test_every_template_is_made_of_what_the_engine_says():
    said = engine_texts()
    strange = []
    for sentence in SENTENCES:
        pieces = [piece.strip(" .:,()") for piece in CUTS.split(sentence)]
        strange += [(sentence, piece) for piece in pieces if len(piece) > 3 and piece not in said]
    assert not strange, strange
    assert len(SENTENCES) >= 100 and len(set(SENTENCES)) == len(SENTENCES)


def test_errors_as_the_engine_raises_them_are_known(german):
    with pytest.raises(RequestError) as empty:
        GenerationRequest((Message("user", " "),))
    for error in (ContextOverflow(9_000, 8_192), NotEnoughMemory("Qwen", 32_768, 9_000_000_000, 5_000_000_000), empty.value):
        assert engine_words(str(error)) != str(error)
    assert engine_words(Trimmed(3, 1_200, 0.0).reason).startswith("Der Chat passt nicht in den Kontext")
    assert engine_words(FirstGuesses(1, 8, 9).notice).startswith(
        "In einer kurzen Prüfung war der erste Vorschlag des Entwurfsmodells 1 von 8"
    )
    assert engine_words(ContextFull(8_192, 0.0).reason).startswith("Der Kontext von 8.192 Token ist voll")


def test_numbers_in_a_sentence_follow_the_language(german):
    text = engine_words(str(NotEnoughMemory("Qwen", 32_768, 9_100_000_000, 5_000_000_000)))
    assert "9,1\u00a0GB" in text and "32.768 Token" in text and "Qwen" in text
    assert engine_words("fits with 32,768 tokens of context (10.7 GB)") == "passt mit 32.768 Token Kontext (10,7\u00a0GB)"


def test_a_reason_inside_a_sentence_is_said_in_the_language_too(german):
    assert "kein Entwurfsmodell" in engine_words("Lookup drafting: this model has no draft.")


def test_a_message_and_its_action_are_both_said(german):
    words = engine_words("The proxy cannot be reached: check the network and try again.")
    assert words == f"{engine_words('The proxy cannot be reached')}: {engine_words('check the network and try again.')}"
    assert "cannot" not in words and "check" not in words


def test_half_a_translation_is_worse_than_none(german):
    text = "The proxy cannot be reached: stand on one leg."
    assert engine_words(text) == text


def test_what_is_not_known_stays_as_it_is(german):
    for text in ("", "Something never said before.", "A: B", "42"):
        assert engine_words(text) == text


def test_in_english_every_sentence_is_itself():
    for sentence in set(SENTENCES) - IN_WINDOW.keys():
        made = re.sub(r"\{\w+\}", "X1", sentence)
        assert engine_words(made) == unbroken(made)


def test_files_that_are_not_what_they_should_be_are_said_in_the_language_too(german, tmp_path):
    (tmp_path / "not.gguf").write_text("no model")
    (tmp_path / "config.json").write_text("[]")
    for work in (lambda: GgufFile(tmp_path / "not.gguf"), lambda: GgufFile(tmp_path / "gone"), lambda: Config.read(tmp_path)):
        with pytest.raises(ModelError) as told:
            work()
        assert engine_words(str(told.value)) != str(told.value)
    refused = refusal({"model_type": "martian"}, "/m")
    told = engine_words(str(refused))
    assert told.startswith("/m gehört zur Familie 'martian', die mlx-lm ") and told.endswith("llama, qwen3 oder gemma3.")
    refused = refusal({"model_type": "llama", "quantization_config": {"quant_method": "fp8"}}, "/m")
    assert "sind als 8-Bit-Gleitkommazahlen (fp8) gespeichert" in engine_words(refused.what)


def test_the_window_names_no_command_of_the_terminal_for_a_model_that_is_not_here():
    assert IN_WINDOW.keys() <= set(SENTENCES)
    words = engine_words("org/model is not on this machine: fetch it with `slipstream models add org/model`.")
    assert words == "org/model is not on this computer: get it in the Models window."
