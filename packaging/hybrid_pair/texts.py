"""From the teacher's chats to training rows: pairs of question and answer, a small tokenizer of their own, packed rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

END, USER, ASSISTANT, SYSTEM, MASK = range(5)
SPECIAL = ("<|end|>", "<|user|>", "<|assistant|>", "<|system|>", "<|mask|>")
TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
# How the family cuts text into words. Loaders put this in the place of whatever tokenizer.json says, so it must be learned with it.
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEACHER_START, TEACHER_END = 1, 2  # what opens and ends a turn of the teacher
TOKENIZER_SAMPLE = 60_000  # pairs; more changes nothing in 2,048 tokens

Pair = tuple[str, str]  # what the user says, what is answered


def read_chats(ids: np.ndarray, looping: np.ndarray, teacher: Tokenizer) -> list[list[Pair]]:
    """The finished pairs of every chat [R, L]; a pair whose answer loops, or with a broken character, is left out and the chat
    goes on as a new one."""
    pieces: list[list[int]] = []
    rows: list[list[tuple[int, bool]]] = []  # each row's turns: number of its piece, whether it loops
    for row, loops in zip(ids, looping, strict=True):
        turns = []
        starts, ends = np.flatnonzero(row == TEACHER_START), np.flatnonzero(row == TEACHER_END)
        for start in starts:
            after = np.searchsorted(ends, start)
            if after == len(ends):
                break  # not finished when the row was full
            end = int(ends[after])
            turns.append((len(pieces), bool(loops[start:end].any())))
            pieces.append(row[start + 1 : end].tolist())
        rows.append(turns)
    texts = teacher.decode_batch(pieces, skip_special_tokens=True)
    return [chat for turns in rows for chat in _pairs([(texts[piece], bad) for piece, bad in turns])]


def _pairs(turns: list[tuple[str, bool]]) -> Iterator[list[Pair]]:
    chat: list[Pair] = []
    for (asked, _), (answer, loops) in pairwise(turns):
        if not (asked.startswith("user\n") and answer.startswith("assistant\n")):
            continue
        user, said = asked.removeprefix("user\n").strip(), answer.removeprefix("assistant\n").strip()
        if loops or len(user) < 2 or not said or "�" in user + said:
            if chat:
                yield chat
            chat = []
        else:
            chat.append((user, said))
    if chat:
        yield chat


def without(chats: Iterable[list[Pair]], prompts: list[str]) -> list[list[Pair]]:
    """The chats in which nobody says one of ``prompts``."""
    return [chat for chat in chats if not any(prompt in user for user, _ in chat for prompt in prompts)]


def train_tokenizer(pairs: list[Pair], size: int) -> Tokenizer:
    """Byte-level BPE with at most ``size`` tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    whole_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(WORDS), "isolated"), whole_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=list(SPECIAL), initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator((text for pair in pairs[:TOKENIZER_SAMPLE] for text in pair), trainer)
    return tokenizer


def write_tokenizer(tokenizer: Tokenizer, folder: Path, context: int) -> None:
    """tokenizer.json and tokenizer_config.json as every loader of such folders reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context,
        "clean_up_tokenization_spaces": False,
        "eos_token": SPECIAL[END],
        "pad_token": SPECIAL[END],
        "chat_template": TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1) + "\n", "utf-8")


def prompt_ids(tokenizer: Tokenizer, users: list[str]) -> list[list[int]]:
    """What the chat template makes of one user turn each, open for the answer."""
    encoded = tokenizer.encode_batch(users, add_special_tokens=False)
    return [[USER, *one.ids, END, ASSISTANT] for one in encoded]


def encode(tokenizer: Tokenizer, chats: list[list[Pair]]) -> list[list[int]]:
    """Token ids of every pair, in order."""
    pairs = [pair for chat in chats for pair in chat]
    answers = tokenizer.encode_batch([said for _, said in pairs], add_special_tokens=False)
    prompts = prompt_ids(tokenizer, [user for user, _ in pairs])
    return [[*prompt, *answer.ids, END] for prompt, answer in zip(prompts, answers, strict=True)]


def pack(pairs: list[list[int]], length: int) -> np.ndarray:
    """Rows [n, length] that all begin with a pair; the pair that a row's end cuts begins the next row again, unless it would fill
    one whole."""
    rows: list[list[int]] = []
    row: list[int] = []
    for pair in pairs:
        row += pair
        if len(row) >= length:
            rows.append(row[:length])
            row = list(pair) if length < len(row) and len(pair) < length else []
    return np.array(rows, np.int32).reshape(-1, length)
