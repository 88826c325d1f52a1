"""Rebuilds a byte-level BPE tokenizer from GGUF metadata, as the files that transformers and mlx-lm read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, pre_tokenizers, processors
from tokenizers.models import BPE

from engine.errors import ModelError
from engine.models.gguf_file import GgufFile

# Token types of the GGUF format: 3 is control, 4 is defined by the model's user. Both are matched before any splitting.
_CONTROL, _USER_DEFINED = 3, 4
# Names of `tokenizer.ggml.pre` that stand for one rule: each digit alone, then GPT-2's own splitting.
_DIGITS_ALONE = {"smollm", "starcoder", "refact", "codeshell", "command-r"}
_GPT2 = {"gpt-2", "default"}
_LLAMA3 = {"llama-bpe", "llama3", "llama-v3"}
_LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def write_tokenizer(file: GgufFile, folder: Path, context_length: int) -> dict[str, Any]:
    """Writes the three files and returns the token ids for config.json.

    These are ``bos_token_id``, ``pad_token_id`` and ``eos_token_id`` (a list where a turn ends on another token too).

    Raises ``ModelError`` for a tokenizer that is not byte-level BPE, or whose way of splitting text is not known here.
    """
    tokens: list[str] = file.get("tokenizer.ggml.tokens", list)
    ids = _special_ids(file, len(tokens))
    tokenizer = _build(file, tokens)
    # Not tokenizer.save: it reports a full disk as a bare Exception.
    (folder / "tokenizer.json").write_text(tokenizer.to_str(pretty=True), encoding="utf-8")
    names = {"bos_token_id": "bos_token", "eos_token_id": "eos_token", "pad_token_id": "pad_token"}
    config: dict[str, Any] = {
        # This class takes tokenizer.json as it is; the model-specific ones rebuild the splitting rule from their own.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context_length,
        "clean_up_tokenization_spaces": False,
        "add_prefix_space": False,
    }
    config |= {name: tokens[ids[key]] for key, name in names.items() if key in ids}
    end_of_turn = file.get("tokenizer.ggml.eot_token_id", int, ids["eos_token_id"])
    ends = ids["eos_token_id"] if end_of_turn == ids["eos_token_id"] else [ids["eos_token_id"], end_of_turn]
    unknown = file.get("tokenizer.ggml.unknown_token_id", int, -1)
    if 0 <= unknown < len(tokens):
        config["unk_token"] = tokens[unknown]
    template = file.get("tokenizer.chat_template", str, None)
    if template is not None:
        config["chat_template"] = template
    _write_json(folder / "tokenizer_config.json", config)
    ids |= {"eos_token_id": ends}
    _write_json(folder / "generation_config.json", ids | {"do_sample": False})
    return ids


def _special_ids(file: GgufFile, vocabulary: int) -> dict[str, Any]:
    ids: dict[str, Any] = {}
    for key, name in (("bos", "bos"), ("eos", "eos"), ("padding", "pad")):
        full = f"tokenizer.ggml.{key}_token_id"
        if key != "eos" and not file.has(full):
            continue
        value = file.get(full, int)
        if not 0 <= value < vocabulary:
            raise ModelError(f"{file.path.name} has a {full} outside its vocabulary: it cannot be imported.")
        ids[f"{name}_token_id"] = value
    return ids


def _build(file: GgufFile, tokens: list[str]) -> Tokenizer:
    kind = file.get("tokenizer.ggml.model", str)
    if kind != "gpt2":
        raise ModelError(f"{file.path.name} has a {kind!r} tokenizer: only byte-level BPE ('gpt2') can be imported.")
    splitting = file.get("tokenizer.ggml.pre", str, "default")
    merges = [tuple(merge.split(" ", 1)) for merge in file.get("tokenizer.ggml.merges", list)]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    try:
        model = BPE(vocabulary, merges, ignore_merges=splitting in _LLAMA3)
    except Exception as error:  # the Rust side raises a bare Exception for a merge of unknown tokens
        raise ModelError(f"{file.path.name} has merges outside its vocabulary: it cannot be imported.") from error
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = _pre_tokenizer(file, splitting)
    tokenizer.decoder = decoders.ByteLevel()
    types: list[int] = file.get("tokenizer.ggml.token_type", list)
    if len(types) != len(tokens):
        raise ModelError(f"{file.path.name} has {len(types)} types for {len(tokens)} tokens: it cannot be imported.")
    for index, (token, kind_of_token) in enumerate(zip(tokens, types, strict=True)):
        if kind_of_token in (_CONTROL, _USER_DEFINED):
            tokenizer.add_tokens([AddedToken(token, special=kind_of_token == _CONTROL, normalized=False)])
            if tokenizer.token_to_id(token) != index:
                raise ModelError(f"{file.path.name} lists the token {token!r} twice: it cannot be imported.")
    if file.get("tokenizer.ggml.add_bos_token", bool, False):
        bos = file.get("tokenizer.ggml.bos_token_id", int)
        first = f"{tokens[bos]} $A"
        tokenizer.post_processor = processors.TemplateProcessing(first, special_tokens=[(tokens[bos], bos)])
    return tokenizer


def _pre_tokenizer(file: GgufFile, splitting: str) -> pre_tokenizers.PreTokenizer:
    if splitting in _DIGITS_ALONE:
        digits = pre_tokenizers.Digits(individual_digits=True)
        return pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    if splitting in _GPT2:
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    if splitting in _LLAMA3:
        split = pre_tokenizers.Split(Regex(_LLAMA3_PATTERN), behavior="isolated")
        return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    raise ModelError(f"{file.path.name} splits text by the rule {splitting!r}, which is not supported.")


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
