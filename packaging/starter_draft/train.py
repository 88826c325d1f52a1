"""Trains one or several drafts at once: they share each batch, the target's pass over it and the teacher's distribution.

    python train.py --gguf G --tokenizer T --data data.pt --first FIRST_DRAFT --state state.pt --output OUT --seconds 500 \\
        --draft name=d3,layers=0-2-3,loss=dpace,distil=0.5,muon=1 --draft ...

``--state`` is read where it exists (same drafts go on from it) and written often. ``--export NAME`` writes a checkpoint.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from blocks import block_loss, choose_anchors, pack, slot_losses
from draft import Draft, export, read_draft
from evaluate import heldout_answers, replay, suite_answers, summary
from muon import Muon
from target import Shape, Target, read_gguf
from tokenizers import Tokenizer
from torch import Tensor

TAPS, MASK_ID, STOP = (1, 8, 14, 21, 27), 3, 2
SLOTS = 512  # block slots in a row: anchors times block length, the same for every block length
MIX = {4: 0.1, 8: 0.55, 16: 0.35}  # block lengths trained, so that a controller may choose any
EMA = 0.998
HELD_OUT = 160


@dataclass(slots=True)
class Trained:
    """One draft in training."""

    name: str
    model: Draft
    optimiser: Muon
    average: dict[str, Tensor]
    loss: str
    distil: float
    rate: float
    log: Tensor


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name in ("gguf", "tokenizer", "data", "first", "state", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--suite", type=Path, default=Path(__file__).parent / "eval_prompts.jsonl")
    parser.add_argument("--draft", action="append", default=[], help="name=,layers=0-1-2-3,loss=dpace|decay,distil=,muon=1,rate=")
    parser.add_argument("--seconds", type=float, default=300, help="training time, evaluation not counted")
    parser.add_argument("--decay-seconds", type=float, default=0, help="the rate falls to 0 over this long at the end")
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--head", type=int, default=16384, help="most frequent tokens that the draft chooses from in training")
    parser.add_argument("--sizes", type=int, nargs="*", default=[4096, 8192, 12288, 16384], help="head sizes to evaluate")
    parser.add_argument("--blocks", type=int, nargs="*", default=[4, 6, 8, 12, 16], help="block lengths to evaluate")
    parser.add_argument("--export", action="append", default=[], help="names to export")
    parser.add_argument("--export-head", type=int, default=8192)
    parser.add_argument("--first-too", action="store_true", help="evaluate the first draft beside the trained ones")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--layers", type=int, default=Shape().layers, help="target layers; fewer only to try the program out")
    return parser.parse_args(arguments)


def make_drafts(options: argparse.Namespace, shape: Shape, device: torch.device) -> list[Trained]:
    made = []
    for text in options.draft:
        spec = dict(part.split("=") for part in text.split(","))
        keep = [int(index) for index in spec["layers"].split("-")]
        parameters = {name: value.requires_grad_() for name, value in read_draft(options.first, keep, device).items()}
        average = {name: value.detach().clone() for name, value in parameters.items()}
        optimiser = Muon(parameters, spec.get("muon", "1") == "1")
        model = Draft(parameters, shape, compiled=device.type == "cuda")
        distil, rate = float(spec.get("distil", "0.5")), float(spec.get("rate", "1e-3"))
        log = torch.zeros(3, device=device)
        made.append(Trained(spec["name"], model, optimiser, average, spec.get("loss", "dpace"), distil, rate, log))
    return made


def save_state(path: Path, drafts: list[Trained], step: int) -> None:
    state: dict[str, Any] = {"step": step}
    for draft in drafts:
        state[draft.name] = {
            "parameters": {name: value.detach() for name, value in draft.model.parameters.items()},
            "average": draft.average,
            "optimiser": draft.optimiser.state(),
        }
    torch.save(state, path.with_suffix(".part"))
    path.with_suffix(".part").replace(path)


def load_state(path: Path, drafts: list[Trained], device: torch.device) -> int:
    """Puts saved drafts of the same names back; the step they had reached."""
    if not path.exists():
        return 0
    state = torch.load(path, map_location=device, weights_only=True)
    for draft in drafts:
        if draft.name not in state:
            continue
        with torch.no_grad():
            for name, value in state[draft.name]["parameters"].items():
                draft.model.parameters[name].copy_(value)
                draft.average[name].copy_(state[draft.name]["average"][name])
        draft.optimiser.load(state[draft.name]["optimiser"])
    return int(state["step"])


@dataclass(frozen=True, slots=True)
class Head:
    """The draft's part of the vocabulary: ``ids`` [K] most frequent first, ``places`` [V] (-1: left out), ``rows`` [K, H]."""

    ids: Tensor
    places: Tensor
    rows: Tensor


def frequent(counts: Tensor, size: int) -> Tensor:
    """The ``size`` most frequent token ids, the stop token always among them and the mask token never."""
    counts = counts.clone().to(torch.float64)
    counts[STOP], counts[MASK_ID] = float("inf"), -1.0
    return counts.sort(descending=True, stable=True).indices[:size]


def make_head(counts: Tensor, size: int, embedding: Tensor) -> Head:
    ids = frequent(counts, size).to(embedding.device)
    places = torch.full((embedding.shape[0],), -1, device=embedding.device)
    places[ids] = torch.arange(size, device=embedding.device)
    return Head(ids, places, embedding[ids].contiguous())


class Trainer:
    """The loop: one batch, one target pass, one update of every draft."""

    def __init__(self, target: Target, head: Head, drafts: list[Trained], ids: Tensor, supervised: Tensor, rows: int, seed: int):
        self.target, self.head, self.drafts, self.rows = target, head, drafts, rows
        self.ids, self.supervised = ids, supervised
        self.random = random.Random(seed)
        torch.manual_seed(seed)
        self.order, self.next, self.step = torch.empty(0, dtype=torch.long), 0, 0
        compiled = ids.is_cuda
        self._losses = torch.compile(slot_losses, dynamic=False) if compiled else slot_losses
        self._teach = torch.compile(self._teacher, dynamic=False) if compiled else self._teacher

    @staticmethod
    def _teacher(rows: Tensor, head: Tensor) -> Tensor:
        return F.linear(rows, head).float().softmax(-1).to(rows.dtype)

    def batch(self) -> tuple[Tensor, Tensor]:
        if self.next + self.rows > len(self.order):
            self.order, self.next = torch.randperm(len(self.ids)), 0
        chosen = self.order[self.next : self.next + self.rows].to(self.ids.device)
        self.next += self.rows
        return self.ids[chosen].long(), self.supervised[chosen]

    def update(self, factor: float) -> None:
        """One step of every draft at ``factor`` times its own rate."""
        ids, supervised = self.batch()
        block = self.random.choices(list(MIX), list(MIX.values()))[0]
        embedding = self.target.weights.embedding
        anchors, exists = choose_anchors(supervised, SLOTS // block)
        blocks = pack(ids, supervised, anchors, exists, block, MASK_ID, embedding.dtype)
        with torch.no_grad():
            final, taps = self.target(ids, TAPS)
            before = (blocks.positions - 1).clamp(0, ids.shape[1] - 1)
            said = final.gather(1, before[:, :, None].expand(-1, -1, final.shape[2])).view(-1, final.shape[2])
            teacher = self._teach(said, self.head.rows)
            inputs = F.embedding(blocks.inputs, embedding)
        for draft in self.drafts:
            hidden = draft.model(inputs, taps, blocks.positions, blocks.mask)
            loss, tau = block_loss(
                blocks, hidden, self.head.rows, self.head.places, teacher, draft.loss, draft.distil, self._losses
            )
            loss.backward()
            values = list(draft.model.parameters.values())
            torch.nn.utils.clip_grad_norm_(values, 1.0, foreach=True)
            draft.optimiser.step(draft.rate * factor)
            with torch.no_grad():
                torch._foreach_lerp_(list(draft.average.values()), values, 1 - EMA if self.step > 500 else 0.02)
                draft.log += torch.stack([loss.detach(), tau, torch.ones_like(tau)])
        self.step += 1


def train(trainer: Trainer, options: argparse.Namespace) -> None:
    """Trains for ``options.seconds``, saving the state every two minutes."""
    begun = last_saved = time.monotonic()
    first = trainer.step
    while (elapsed := time.monotonic() - begun) < options.seconds:
        fade = (options.seconds - elapsed) / options.decay_seconds if options.decay_seconds else 1.0
        trainer.update(min(1.0, fade, (trainer.step - first + 1) / 100))
        if trainer.step % 50 == 0 and trainer.ids.is_cuda:
            torch.cuda.synchronize()  # keeps the clock honest: kernels are queued far ahead otherwise
        if trainer.step % 500 == 0 or trainer.step == first + 20:
            for draft in trainer.drafts:
                loss, tau, count = draft.log.tolist()
                print(
                    f"step {trainer.step} {elapsed:.0f} s {draft.name}: loss {loss / count:.4f} tau {tau / count:.3f}", flush=True
                )
                draft.log.zero_()
        if time.monotonic() - last_saved > 120:
            save_state(options.state, trainer.drafts, trainer.step)
            last_saved = time.monotonic()
    save_state(options.state, trainer.drafts, trainer.step)
    print(f"stopped at step {trainer.step} after {time.monotonic() - begun:.0f} s", flush=True)


def evaluate(
    options: argparse.Namespace, drafts: list[Trained], counts: Tensor, held: tuple[Tensor, Tensor]
) -> list[dict[str, Any]]:
    """Replayed decoding in fp32 on the suite, and on held-out chats at blocks 8 and 16; one entry a draft, set, block and head."""
    device = held[0].device
    shape = Shape(layers=options.layers)
    weights = read_gguf(options.gguf, shape).to(torch.float32, device)
    target = Target(weights, shape)
    tokenizer = Tokenizer.from_file(str(options.tokenizer))
    suite = suite_answers(weights, shape, tokenizer, options.suite)
    chats = heldout_answers(*held)
    sized = {size: frequent(counts, size).to(device) for size in options.sizes}
    everything = torch.tensor([i for i in range(shape.vocabulary) if i != MASK_ID], device=device)
    compared: list[tuple[str, Draft, dict[int, Tensor]]] = [
        (d.name, Draft(d.average, shape), {**sized, shape.vocabulary: everything} if len(drafts) < 3 else sized) for d in drafts
    ]
    if options.first_too:
        compared.append(("first", Draft(read_draft(options.first, None, device), shape), {shape.vocabulary: everything}))
    lines = []
    for name, model, heads in compared:
        for label, answers, lengths in (("suite", suite, options.blocks), ("chats", chats, [8, 16])):
            for (block, size), taus in replay(model, weights, target, answers, TAPS, MASK_ID, lengths, heads).items():
                line = {"draft": name, "set": label, "depth": model.depth, "block": block, "head": size}
                line |= summary(taus, model.depth, block, size)
                line["taus"] = {key: round(value, 3) for key, value in taus.items()} if label == "suite" else {}
                lines.append(line)
    return lines


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    shape = Shape(layers=options.layers)
    stored = torch.load(options.data, weights_only=True)
    ids, offsets, counts = stored["ids"].to(device), stored["offsets"].to(device), stored["counts"]
    kept_back = min(HELD_OUT, len(ids) // 4)
    weights = read_gguf(options.gguf, shape).to(torch.bfloat16 if device.type == "cuda" else torch.float32, device)
    target = Target(weights, shape, compiled=device.type == "cuda")
    drafts = make_drafts(options, shape, device)
    supervised = offsets[kept_back:] > 0
    head = make_head(counts, options.head, weights.embedding)
    trainer = Trainer(target, head, drafts, ids[kept_back:], supervised, options.rows, options.seed)
    trainer.step = load_state(options.state, drafts, device)
    trainer.random.seed(options.seed + trainer.step)
    train(trainer, options)
    options.output.mkdir(parents=True, exist_ok=True)
    vocabulary = frequent(counts, options.export_head)
    for draft in drafts:
        if draft.name in options.export:
            export(draft.average, options.output / draft.name, shape, TAPS, 16, MASK_ID, vocabulary)
    lines = evaluate(options, drafts, counts, (ids[:kept_back], offsets[:kept_back]))
    (options.output / "evaluation.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    for line in lines:
        print(json.dumps({key: value for key, value in line.items() if key != "taus"}), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
