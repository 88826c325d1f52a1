"""Training data that the target writes itself: whole chats, all rows in lock step, user turns sampled and answers greedy."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

import torch
from prompts import user_turn
from target import Decoder, Shape, TargetWeights
from tokenizers import Tokenizer
from torch import Tensor

STOP = 2
SYSTEM = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
USER, ASSISTANT, END = "<|im_start|>user\n", "<|im_start|>assistant\n", "<|im_end|>\n"
ANSWER_LIMIT = 220  # speed matters most in the first 200 tokens of an answer
USER_LIMIT = 56
OPENING_WIDTH = 128  # room for the longest opening, the same in every batch
BUCKET = 64  # cache places are looked at in steps of this many
LOOP_PERIOD, LOOP_RUN = 64, 24  # a run this long that repeats what stood at most this far back is a loop


@dataclass(frozen=True, slots=True)
class Scripts:
    """What is forced into each row. ``ids`` [R, T+1, F]: the opening of each turn, then the answer header; ``lengths`` [R, T+1];
    ``complete`` [R, T]: 1 where the opening is a whole user turn, so that the answer follows at once."""

    ids: Tensor
    lengths: Tensor
    complete: Tensor


def pack_scripts(rows: list[list[tuple[list[int], bool]]], header: list[int], device: torch.device) -> Scripts:
    """Scripts of rows of (opening ids, complete)."""
    turns, width = len(rows[0]), max(len(ids) for row in rows for ids, _ in row)
    width = max(width, len(header), OPENING_WIDTH)
    ids = torch.zeros(len(rows), turns + 1, width, dtype=torch.long)
    lengths = torch.zeros(len(rows), turns + 1, dtype=torch.long)
    for r, row in enumerate(rows):
        for t, opening in enumerate([opening for opening, _ in row] + [header]):
            ids[r, t, : len(opening)] = torch.tensor(opening, dtype=torch.long)
            lengths[r, t] = len(opening)
    complete = torch.tensor([[int(done) for _, done in row] for row in rows])
    return Scripts(ids.to(device), lengths.to(device), complete.to(device))


def seeded_scripts(tokenizer: Tokenizer, rows: int, turns: int, seed: int, device: torch.device) -> Scripts:
    """Openings of every kind for ``rows`` chats of ``turns`` turns."""
    generator = random.Random(seed)
    texts, flags = [], []
    for _ in range(rows):
        for turn in range(turns):
            text, complete = user_turn(generator, turn == 0)
            texts.append((SYSTEM if turn == 0 else "\n") + USER + text + (END + ASSISTANT if complete else ""))
            flags.append(complete)
    encoded = [e.ids for e in tokenizer.encode_batch(texts, add_special_tokens=False)]
    packed = [[(encoded[r * turns + t], flags[r * turns + t]) for t in range(turns)] for r in range(rows)]
    return pack_scripts(packed, tokenizer.encode(END + ASSISTANT, add_special_tokens=False).ids[1:], device)


class ChatWriter:
    """Writes chats row by row in lock step. On a GPU each step is one captured graph for each reach of the cache."""

    def __init__(self, weights: TargetWeights, shape: Shape, rows: int, length: int, scripts: Scripts, limit: int = ANSWER_LIMIT):
        device = weights.norm.device
        self.decoder, self.rows, self.length, self.limit = Decoder(weights, shape, rows, length), rows, length, limit
        self.scripts = Scripts(scripts.ids.clone(), scripts.lengths.clone(), scripts.complete.clone())  # captured: never replaced
        self.ids = torch.zeros(rows, length, dtype=torch.long, device=device)
        self.offsets = torch.zeros(rows, length, dtype=torch.long, device=device)  # 1.. inside an answer, 0 elsewhere
        self.position = torch.zeros(1, dtype=torch.long, device=device)
        zeros = torch.zeros(rows, dtype=torch.long, device=device)
        self.turn, self.script, self.pointer, self.answering, self.written = (zeros.clone() for _ in range(5))
        self.every = torch.arange(rows, device=device)
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}

    def restart(self, scripts: Scripts) -> None:
        """Begins new chats in the same memory; ``scripts`` are copied over the old ones."""
        width = self.scripts.ids.shape[2]
        self.scripts.ids.zero_()[:, :, : min(width, scripts.ids.shape[2])] = scripts.ids[:, :, :width]
        self.scripts.lengths.copy_(scripts.lengths.clamp(max=width))
        self.scripts.complete.copy_(scripts.complete)
        self.ids.zero_()
        self.offsets.zero_()
        self.ids[:, 0] = self.scripts.ids[:, 0, 0]
        for state in (self.turn, self.script, self.written, self.position):
            state.zero_()
        self.pointer.fill_(1)
        self.answering.copy_(self.scripts.complete[:, 0])

    def _step(self, reach: int) -> None:
        tokens = self.ids.gather(1, self.position.expand(self.rows)[:, None])[:, 0]
        logits = self.decoder.step(tokens, self.position, reach)
        noise = torch.rand_like(logits, dtype=torch.float32).clamp_min_(1e-9).log_().neg_().log_()  # minus Gumbel noise
        sampled, greedy = (logits.float() - noise).argmax(-1), logits.argmax(-1)
        turns, scripts = self.scripts.complete.shape[1], self.scripts
        size = scripts.lengths[self.every, self.script]
        forced = self.pointer < size
        text = scripts.ids[self.every, self.script, self.pointer.clamp(max=scripts.ids.shape[2] - 1)]
        cut = ~forced & (self.written >= torch.where(self.answering == 1, self.limit, USER_LIMIT))
        chosen = torch.where(self.answering == 1, greedy, sampled).masked_fill(cut, STOP)
        following = torch.where(forced, text, chosen)
        free = ~forced
        self.position.add_(1)
        self.ids.index_copy_(1, self.position, following[:, None])
        inside = (free & ~cut & (self.answering == 1)).long() * (self.written + 1)
        self.offsets.index_copy_(1, self.position, inside[:, None])
        ended = free & (following == STOP)
        self.pointer.add_(forced.long()).masked_fill_(ended, 0)
        self.written.add_(free.long()).masked_fill_(ended, 0)
        asked, answered = ended & (self.answering == 0), ended & (self.answering == 1)
        self.turn.add_(answered.long()).clamp_(max=turns - 1)
        self.script.copy_(torch.where(asked, turns, torch.where(answered, self.turn, self.script)))
        self.answering.copy_(torch.where(asked, 1, torch.where(answered, scripts.complete[self.every, self.turn], self.answering)))

    @torch.no_grad()
    def write(self, scripts: Scripts) -> tuple[Tensor, Tensor]:
        """Chats for ``scripts``: ids [R, L] and offsets [R, L]."""
        self.restart(scripts)
        for position in range(self.length - 1):
            reach = min(self.length, (position // BUCKET + 1) * BUCKET)
            if not self.ids.is_cuda:
                self._step(reach)
                continue
            if reach not in self._graphs:
                self._capture(reach, position, scripts)
            self._graphs[reach].replay()
        return self.ids.clone(), self.offsets.clone()

    def _capture(self, reach: int, position: int, scripts: Scripts) -> None:
        """Captures one step; capture itself runs nothing, and the warm-up's effects are undone by saving the state."""
        state = (self.ids, self.offsets, self.position, self.turn, self.script, self.pointer, self.answering, self.written)
        saved = [tensor.clone() for tensor in state]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._step(reach)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._step(reach)
        for tensor, value in zip(state, saved, strict=True):
            tensor.copy_(value)
        self._graphs[reach] = graph


def loops(ids: Tensor, offsets: Tensor) -> Tensor:
    """True [R, L] from where an answer begins to repeat itself to its end."""
    begun = torch.zeros_like(ids, dtype=torch.bool)
    length = ids.shape[1]
    for period in range(1, LOOP_PERIOD + 1):
        run = max(LOOP_RUN, 2 * period)
        if length < period + run:
            break
        later = offsets[:, period:]
        same = (ids[:, period:] == ids[:, :-period]) & (offsets[:, :-period] > 0) & (later == offsets[:, :-period] + period)
        total = torch.nn.functional.pad(same.int().cumsum(1), (1, 0))
        whole = total[:, run:] - total[:, :-run] == run  # [R, L-period-run+1]: a run of copies begins here
        begun[:, period : length - run + 1] |= whole
    # Spread each beginning to the end of its own answer: the last beginning lies at or after the answer's own start.
    place = torch.arange(length, device=ids.device).expand_as(ids)
    start = place - offsets + 1
    latest = torch.where(begun, place, torch.full_like(place, -1)).cummax(1).values
    return (offsets > 0) & (latest >= start)


def holds_any(ids: Tensor, texts: list[list[int]]) -> Tensor:
    """True [R] for rows that contain one of the token sequences."""
    found = torch.zeros(ids.shape[0], dtype=torch.bool, device=ids.device)
    for text in texts:
        windows = ids.shape[1] - len(text) + 1
        match = torch.ones(ids.shape[0], windows, dtype=torch.bool, device=ids.device)
        for index, token in enumerate(text):
            match &= ids[:, index : index + windows] == token
        found |= match.any(1)
    return found


def read_suite(path: Path) -> list[tuple[str, list[dict[str, str]]]]:
    """The evaluation prompts: (id, messages)."""
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    return [(line["id"], line.get("messages") or [{"role": "user", "content": line["prompt"]}]) for line in lines]


def render(messages: list[dict[str, str]]) -> str:
    """The target's chat template, up to where the answer begins."""
    return SYSTEM + "".join(f"<|im_start|>{m['role']}\n{m['content']}{END}" for m in messages) + ASSISTANT
