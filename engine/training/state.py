"""A run's saved state, in its output folder until it is done: texts, masters, optimiser and how far it has come."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import mlx.core as mx
import numpy as np

from engine.errors import RequestError
from engine.training.corpus import Corpus, Text
from engine.training.export import replace_file
from engine.training.settings import DraftPlan, TrainingSettings

log = logging.getLogger(__name__)
FORMAT = 1


@dataclass(slots=True)
class Reached:
    """How far a run has come. ``steps`` is its planned length, None before it is known."""

    step: int = 0
    steps: int | None = None
    elapsed_s: float = 0.0
    before: float = 1.0
    best: float = 0.0
    best_step: int = 0


class SavedRun:
    """The files ``run-texts.npz`` and ``run-state.safetensors`` in the output folder; before there are texts, the answers so far
    in ``run-answers.jsonl``."""

    def __init__(self, folder: Path, identity: str):
        self._texts, self._state = folder / "run-texts.npz", folder / "run-state.safetensors"
        self._answers = folder / "run-answers.jsonl"
        self._identity = identity

    def answers(self) -> dict[tuple[int, ...], Text]:
        """The texts written before this run was interrupted, by prompt; none of another run's."""
        found: dict[tuple[int, ...], Text] = {}
        try:
            lines = self._answers.read_text(encoding="utf-8").splitlines()
            if not lines or json.loads(lines[0]) != self._identity:
                self._answers.unlink()
                return {}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            log.warning("the answers in %s cannot be read and are written again: %r", self._answers, error)
            self._answers.unlink(missing_ok=True)
            return {}
        for line in lines[1:]:
            try:
                ids, begun, marked = json.loads(line)
            except ValueError:  # cut short by a kill
                continue
            answer = [False] * begun + [True] * marked + [False] * (len(ids) - begun - marked)
            found[tuple(ids[:begun])] = Text(tuple(ids), tuple(answer))
        return found

    def add_answer(self, text: Text) -> None:
        """Keeps one text: its ids, where the answer begins, and how much of it is learned from."""
        begun = text.answer.index(True)
        head = "" if self._answers.exists() else json.dumps(self._identity)
        with self._answers.open("a", encoding="utf-8") as file:  # a line cut short by a kill must not take the next one with it
            file.write(f"{head}\n{json.dumps([text.ids, begun, text.answer_tokens])}")

    def texts(self) -> Corpus | None:
        """The texts of the run that was begun here, None for none. Raises ``RequestError`` where it was another run."""
        if not self._texts.exists():
            return None
        try:
            with np.load(self._texts) as stored:
                if str(stored["identity"]) != self._identity:
                    raise RequestError(
                        f"{self._texts.parent} holds an unfinished run with other settings: give --restart, or another folder."
                    )
                width = stored["held_ids"].shape[1]
                held = [
                    Text(tuple(ids[:length].tolist()), tuple(answer[:length].tolist()))
                    for ids, answer, length in zip(stored["held_ids"], stored["held_answer"], stored["lengths"], strict=True)
                    if length <= width
                ]
                return Corpus(stored["ids"], stored["answer"], tuple(held))
        except (OSError, ValueError, KeyError) as error:
            log.warning("the texts of an unfinished run in %s cannot be read, it begins anew: %r", self._texts, error)
            return None

    def save_texts(self, corpus: Corpus) -> None:
        lengths = [len(text.ids) for text in corpus.held_out]
        shape = (len(lengths), max(lengths))
        ids, answer = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=bool)
        for row, text in enumerate(corpus.held_out):
            ids[row, : lengths[row]], answer[row, : lengths[row]] = text.ids, text.answer

        def write(part: Path) -> None:
            with part.open("wb") as file:
                np.savez(
                    file, identity=np.array(self._identity), ids=corpus.ids, answer=corpus.answer,
                    held_ids=ids, held_answer=answer, lengths=np.array(lengths),
                )  # fmt: skip

        replace_file(self._texts, write)
        self._answers.unlink(missing_ok=True)

    def load(self) -> tuple[dict[str, mx.array], Reached] | None:
        """The state to go on from, None for none."""
        if not self._state.exists():
            return None
        try:
            arrays, header = cast(tuple[dict[str, mx.array], dict[str, str]], mx.load(str(self._state), return_metadata=True))
            if header.get("identity") == self._identity and header.get("format") == str(FORMAT):
                return arrays, Reached(**json.loads(header["reached"]))
            log.warning("the state in %s belongs to another run, which begins anew", self._state)
        except (OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
            log.warning("the state in %s cannot be read, the run begins anew: %r", self._state, error)
        return None

    def save(self, arrays: dict[str, mx.array], reached: Reached) -> None:
        header = {"format": str(FORMAT), "identity": self._identity, "reached": json.dumps(asdict(reached))}
        replace_file(self._state, lambda part: mx.save_safetensors(str(part), arrays, header))

    def remove(self) -> None:
        """The run is over: its texts may be a user's own."""
        self._texts.unlink(missing_ok=True)
        self._state.unlink(missing_ok=True)
        self._answers.unlink(missing_ok=True)


def run_identity(parts: list[str], plan: DraftPlan | None, settings: TrainingSettings) -> str:
    """What makes two runs the same run: target, starting draft, texts asked for, plan and settings."""
    text = json.dumps([parts, None if plan is None else asdict(plan), asdict(settings)])
    return hashlib.sha256(text.encode()).hexdigest()
