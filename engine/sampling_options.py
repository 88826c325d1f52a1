"""The options of ``generate`` that choose tokens and what is read, and what a request is given for them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from engine.constraint import Constraint, json_schema
from engine.errors import RequestError
from engine.request import MAX_LOGPROBS, GenerationRequest, SparsePrefill

_NUMBERS: tuple[tuple[str, type, str, str], ...] = (
    ("temperature", float, "T", "0: the most likely token each time"),
    ("top_k", int, "K", "draw from the K most likely tokens; 0: all"),
    ("top_p", float, "P", "draw from the fewest tokens that reach this share"),
    ("min_p", float, "P", "draw from tokens at least this fraction as likely as the most likely"),
    ("repetition_penalty", float, "R", "above 1: tokens of prompt and answer become less likely"),
    ("presence_penalty", float, "A", "taken off the logits of the answer's tokens"),
    ("frequency_penalty", float, "A", "taken off once for each time a token is in the answer"),
)


def add_sampling_options(parser: argparse.ArgumentParser) -> None:
    """Adds an option for each sampling field of a request; the defaults are the request's own."""
    for name, kind, metavar, meaning in _NUMBERS:
        default = GenerationRequest.__dataclass_fields__[name].default
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=default, metavar=metavar, help=meaning)
    bias_help = "added to the logit of one token id; may be given again"
    parser.add_argument("--logit-bias", type=_bias, action="append", default=[], metavar="ID=VALUE", help=bias_help)
    form_help = "a JSON schema that the answer has to satisfy"
    parser.add_argument("--json-schema", type=Path, metavar="FILE", help=form_help)
    logprobs_help = f"with --json: log probabilities, and the N (0 to {MAX_LOGPROBS}) most likely tokens at each place"
    parser.add_argument("--logprobs", type=int, metavar="N", help=logprobs_help)


def sampling_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """The request's fields that the options set."""
    numbers = {name: getattr(arguments, name) for name, *_ in _NUMBERS}
    biases = dict(arguments.logit_bias)
    if len(biases) < len(arguments.logit_bias):
        raise RequestError("--logit-bias names a token twice: give each token once.")
    return {**numbers, "logit_bias": biases, "logprobs": arguments.logprobs}


def sparse_settings(arguments: argparse.Namespace) -> SparsePrefill | None:
    """What of the prompt is to be read; None for all of it."""
    if arguments.sparse_prefill is None:
        return None
    return SparsePrefill(arguments.sparse_prefill, arguments.sparse_scorer or "lexical")


def asked_form(arguments: argparse.Namespace) -> Constraint | None:
    """The form that the answer is to have; None: any."""
    file: Path | None = arguments.json_schema
    if file is None:
        return None
    try:
        return json_schema(file.read_text(encoding="utf-8"), "--json-schema")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"--json-schema {file} cannot be read ({error}): name a file with a JSON schema.") from None


def refuse_what_has_no_effect(arguments: argparse.Namespace) -> None:
    """Raises ``RequestError`` for options of ``generate`` that would be ignored."""
    if arguments.sparse_scorer is not None and arguments.sparse_prefill is None:
        raise RequestError("--sparse-scorer says what --sparse-prefill keeps: give both, or leave it out.")
    if arguments.sparse_prefill is not None and arguments.kv_bits is not None:
        raise RequestError("Quantised keys and values cannot be read in part: leave out --kv-bits or --sparse-prefill.")
    if arguments.draft_bits is not None and arguments.mode in ("baseline", "lookup"):
        raise RequestError(f"--mode {arguments.mode} does not use the draft: leave out --draft-bits.")


def _bias(text: str) -> tuple[int, float]:
    token, _, value = text.partition("=")
    try:
        return int(token), float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not ID=VALUE, such as 42=-100") from None
