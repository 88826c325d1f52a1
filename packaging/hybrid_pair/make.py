"""Makes the hybrid pair from nothing but the starter target: text, tokenizer, target, draft, in the time given.

    python packaging/hybrid_pair/make.py --gguf TARGET.gguf --tokenizer tokenizer.json --output OUT --seconds 480 --seed 1

OUT gets target/ and draft/ (rewritten while they learn), reference.safetensors and log.txt: eight files in all.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from types import SimpleNamespace

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "starter_draft")]

import numpy as np  # noqa: E402
import target as teacher_model  # noqa: E402
import torch  # noqa: E402
import torch._dynamo  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from draft import Draft, export, join_shards, read_draft  # noqa: E402
from evaluate import heldout_answers, replay  # noqa: E402
from hybrid import PREFIX, Hybrid, Sizes, Weights, initial  # noqa: E402
from learn import BLOCK, TAPS, learn_draft, learn_target, new_draft  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402
from selfplay import ChatWriter, loops, seeded_scripts  # noqa: E402
from store import read_target, write_target  # noqa: E402
from texts import END, MASK, Pair, encode, pack, prompt_ids, read_chats, train_tokenizer, without, write_tokenizer  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402
from torch import Tensor  # noqa: E402
from writing import Writer  # noqa: E402

UNTIL = {"text": 0.28, "target": 0.62, "answers": 0.67, "draft": 0.94}  # parts of the time; the rest is for measuring
UNTIL_AGAIN = {"text": 0.15, "target": 0.15, "answers": 0.25, "draft": 0.94}  # where the target is there already
HELD_CHATS = 300
LONGEST_PROMPT = 96  # tokens, of the prompts that the target answers for its draft
REFERENCE = 12  # rows of the target's logits that are kept


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gguf", type=Path, required=True, help="the teacher: the starter target")
    parser.add_argument("--tokenizer", type=Path, required=True, help="the teacher's tokenizer.json")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=480, help="of the whole run, loading and measuring included")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", type=Path, help="the target/ of an earlier run: only a new draft is made for it")
    small = parser.add_argument_group("smaller, to try the program out")
    small.add_argument("--teacher-layers", type=int, default=teacher_model.Shape().layers)
    small.add_argument("--chats", type=int, default=2048, help="chats written side by side")
    small.add_argument("--chat-length", type=int, default=384)
    small.add_argument("--rows", type=int, default=64, help="rows in a training step")
    small.add_argument("--row-length", type=int, default=512)
    small.add_argument("--answers", type=int, default=4096, help="answers written side by side")
    small.add_argument("--answer-length", type=int, default=320, help="prompt included")
    for name in ("vocabulary", "hidden", "inner", "heads", "head-dim"):
        small.add_argument(f"--{name}", type=int, default=getattr(Sizes(), name.replace("-", "_")))
    small.add_argument("--text", type=Path, help="write the chats to this file and stop, or read them where it exists")
    return parser.parse_args(arguments)


class Log:
    """Lines on the screen and in OUT/log.txt, each with the seconds since the start."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.file, self.begun = folder / "log.txt", time.monotonic()
        self.file.write_text("", "utf-8")

    def __call__(self, text: str) -> None:
        line = f"[{time.monotonic() - self.begun:6.1f}] {text}"
        print(line, flush=True)
        with self.file.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def write_text(options: argparse.Namespace, device: torch.device, deadline: float, say: Log) -> list[list[Pair]]:
    """Chats of the teacher, batch after batch while another is expected to fit in the time; at least one."""
    shape = teacher_model.Shape(layers=options.teacher_layers)
    teacher = Tokenizer.from_file(str(options.tokenizer))
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    weights = teacher_model.read_gguf(options.gguf, shape).to(dtype, device)
    say("the teacher is read")
    writer: ChatWriter | None = None
    kept, batch, took = [], 0, 0.0
    while batch == 0 or time.monotonic() + took < deadline:
        begun = time.monotonic()
        scripts = seeded_scripts(teacher, options.chats, 3, options.seed * 1_000_003 + batch, device)
        writer = writer or ChatWriter(weights, shape, options.chats, options.chat_length, scripts)
        ids, offsets = writer.write(scripts)
        kept.append((ids.to(torch.int32).cpu().numpy(), loops(ids, offsets).cpu().numpy()))
        took = time.monotonic() - begun
        batch += 1
        if batch < 4 or batch % 5 == 0:
            say(f"batch {batch} of {options.chats} chats in {took:.1f} s")
    chats = read_chats(np.concatenate([ids for ids, _ in kept]), np.concatenate([looping for _, looping in kept]), teacher)
    say(f"{batch} batches, {len(chats)} chats, {sum(len(chat) for chat in chats)} finished pairs")
    return chats


def text_of(options: argparse.Namespace, device: torch.device, deadline: float, say: Log) -> list[list[Pair]]:
    if options.text is not None and options.text.exists():
        return [[(user, said) for user, said in chat] for chat in json.loads(options.text.read_text("utf-8"))]
    chats = write_text(options, device, deadline, say)
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return chats


def answers_of(
    model: Hybrid, tokenizer: Tokenizer, users: list[str], held: list[str], options: argparse.Namespace, deadline: float, say: Log
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:  # fmt: skip
    """The target's own answers (ids, offsets) to the ``held`` prompts, then to as many others as fit in the time."""
    prompts = [ids for ids in prompt_ids(tokenizer, users) if len(ids) <= min(LONGEST_PROMPT, options.answer_length // 2)]
    writer = Writer(model, options.answers, options.answer_length)
    apart = writer.write(prompt_ids(tokenizer, held)[: options.answers])
    kept, place, took = [], 0, 0.0
    while not kept or (place < len(prompts) and time.monotonic() + took < deadline):
        begun = time.monotonic()
        ids, offsets = writer.write(prompts[place : place + options.answers])
        good = (offsets > 0).sum(1) >= BLOCK
        kept.append((ids[good].to(torch.int32), offsets[good].to(torch.int32)))
        place += options.answers
        took = time.monotonic() - begun
    ids, offsets = torch.cat([ids for ids, _ in kept]), torch.cat([offsets for _, offsets in kept])
    if not len(ids):
        raise SystemExit("The target answers with fewer tokens than a block has slots: it learned too little, give more seconds.")
    share = (offsets > 0).float().mean().item()
    say(f"{len(ids)} answers of {min(place, len(prompts))} prompts, {share:.2f} of their places supervised, {took:.1f} s a batch")
    return (ids, offsets), apart


def accepted(model: Hybrid, parameters: dict[str, Tensor], apart: tuple[Tensor, Tensor]) -> dict[str, float]:
    """Tokens per cycle of replayed greedy decoding at the trained block, by held-out answer."""
    ids, offsets = apart
    good = (offsets > 0).any(1)
    draft = Draft({name: value.detach() for name, value in parameters.items()}, model.sizes.draft_shape())
    every = torch.tensor([token for token in range(model.sizes.vocabulary) if token != MASK], device=ids.device)
    answers = heldout_answers(ids[good], offsets[good])
    found = replay(draft, SimpleNamespace(embedding=model.embedding), model, answers, TAPS, MASK, [BLOCK], {0: every})  # type: ignore[arg-type]
    return found.get((BLOCK, 0), {})


def in_words(taus: dict[str, float]) -> str:
    if not taus:
        return "no held-out answer is long enough"
    values = sorted(taus.values())
    return f"held-out tau {statistics.median(values):.2f} median, {statistics.fmean(values):.2f} mean, {values[0]:.2f} lowest"


@torch.no_grad()
def write_reference(
    model: Hybrid, parameters: dict[str, Tensor], ids: Tensor, prompts: list[list[int]], file: Path
) -> None:  # fmt: skip
    """For other implementations to be compared with: the token ids of the held-out ``prompts`` one after the other, and what both
    models say of one chat [P]: ``logits`` [REFERENCE, V] of the last places, ``draft_logits`` [BLOCK, V] of the block whose
    anchor stands BLOCK places before the end."""
    final, taps = model(ids[None], TAPS)
    draft, anchor = Draft(parameters, model.sizes.draft_shape()), len(ids) - BLOCK
    block = torch.full((1, BLOCK), MASK, device=ids.device)
    block[0, 0] = ids[anchor]
    positions = torch.arange(anchor, len(ids), device=ids.device)[None]
    mask = torch.zeros(1, 1, BLOCK, anchor + BLOCK, device=ids.device)
    hidden = draft(F.embedding(block, model.embedding), taps[:, :anchor], positions, mask)
    tensors = {
        "prompts": torch.tensor([token for prompt in prompts for token in prompt], dtype=torch.int32),
        "ids": ids.to(torch.int32),
        "logits": F.linear(final[0, -REFERENCE:], model.embedding),
        "draft_logits": F.linear(hidden[0], model.embedding),
    }
    save_file({name: value.cpu().numpy() for name, value in tensors.items()}, file)


def sized(options: argparse.Namespace) -> Sizes:
    return Sizes(options.vocabulary, options.hidden, inner=options.inner, heads=options.heads, head_dim=options.head_dim)


def train_target(
    options: argparse.Namespace, chats: list[list[Pair]], tokenizer: Tokenizer, sizes: Sizes, device: torch.device,
    deadline: float, say: Log,
) -> Weights:  # fmt: skip
    held, rest = chats[:HELD_CHATS], chats[HELD_CHATS:]
    if len(rest) < len(held):  # a small trial
        held, rest = chats[: len(chats) // 8], chats[len(chats) // 8 :]
    rows = torch.from_numpy(pack(encode(tokenizer, rest), options.row_length + 1)).to(device)
    apart = torch.from_numpy(pack(encode(tokenizer, held), options.row_length + 1))[: 2 * options.rows].to(device)
    say(f"{rows.numel():,} tokens to learn from, {apart.numel():,} held out")
    if len(rows) < options.rows or not len(apart):
        raise SystemExit("There is too little text for one training step: give more seconds, or fewer --rows.")
    folder, weights = options.output / "target", initial(sizes, device)

    def save() -> None:
        write_target(weights, sizes, END, folder)

    learn_target(weights, sizes, rows, apart, options.rows, deadline, say, save)
    return write_target(weights, sizes, END, folder)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    say = Log(options.output)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(options.seed)
    torch._dynamo.config.suppress_errors = True  # a part that cannot be compiled runs as it is: slower, and it says so
    parts = UNTIL if options.target is None else UNTIL_AGAIN
    deadlines = {name: say.begun + part * options.seconds for name, part in parts.items()}
    held_out = json.loads((HERE / "heldout.json").read_text("utf-8"))
    chats = without(text_of(options, device, deadlines["text"], say), held_out)
    if options.text is not None and not options.text.exists():
        options.text.write_text(json.dumps(chats, ensure_ascii=False), "utf-8")
        return 0
    pairs = [pair for chat in chats for pair in chat]
    sizes = sized(options)
    if options.target is None:
        tokenizer = train_tokenizer(pairs, sizes.vocabulary)
        write_tokenizer(tokenizer, options.output / "target", sizes.context)
        say(f"a tokenizer of {tokenizer.get_vocab_size()} tokens from {len(pairs)} pairs")
        values = train_target(options, chats, tokenizer, sizes, device, deadlines["target"], say)
    else:
        tokenizer, values = Tokenizer.from_file(str(options.target / "tokenizer.json")), read_target(options.target, device)
    model = Hybrid(values, sizes)
    users = [user for user, _ in pairs]
    (ids, offsets), apart = answers_of(model, tokenizer, users, held_out, options, deadlines["answers"], say)
    for row, offset in zip(apart[0][:8], apart[1][:8], strict=True):
        end = int(offset.argmax()) + 1
        say("a held-out answer: " + json.dumps(tokenizer.decode(row[:end].tolist(), skip_special_tokens=False)))
    folder, shape = options.output / "draft", sizes.draft_shape()
    parameters = new_draft(shape, values[PREFIX + "norm.weight"])

    def save() -> None:
        export(parameters, folder, shape, TAPS, BLOCK, MASK, None)
        join_shards(folder)

    learn_draft(
        parameters, values, sizes, ids, offsets > 0, options.rows, deadlines["draft"], say, save,
        lambda: in_words(accepted(model, parameters, apart)),
    )  # fmt: skip
    final = read_draft(folder, None, device)
    taus = accepted(model, final, apart)
    say("as stored: " + in_words(taus) + " " + json.dumps({name: round(tau, 2) for name, tau in taus.items()}))
    end = max(REFERENCE + BLOCK, min(64, int(apart[1][0].argmax()) + 1))
    prompts = prompt_ids(tokenizer, held_out)
    write_reference(model, final, apart[0][0, :end], prompts, options.output / "reference.safetensors")
    say("done")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
