"""What the doctor finds out about the environment and the network. No value of a variable is told that could be private."""

from __future__ import annotations

import os
import re
import urllib.request
from pathlib import Path

from engine.bench.doctor import Verdict, ok, warning
from engine.models.hub_paths import hub_home

# Variables that change what this program or its libraries do.
CHANGING = re.compile(r"(SLIPSTREAM|MLX|OPENBLAS|OMP|HF|HUGGING_?FACE|QT|TRANSFORMERS|TOKENIZERS|DYLD|LD|PYTHON)_?[A-Z_0-9]+")
# Those of them whose values hold a number or a word of a few: worth telling.
PLAIN = re.compile(r"OPENBLAS_\w+|OMP_NUM_THREADS|MLX_\w+|QT_QPA_PLATFORM|QT_SCALE_FACTOR|QT_STYLE_OVERRIDE|HF_HUB_OFFLINE")
WORD = re.compile(r"[\w.,-]{1,24}")
SET_HERE = frozenset({"OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "TOKENIZERS_PARALLELISM"})  # by the program itself
TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
YES = ("1", "ON", "YES", "TRUE")
CERTIFICATES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR")


def environment() -> Verdict:
    """The variables that change behaviour: by name, with their values only where those are numbers or single words."""
    quiet = SET_HERE.union(TOKENS)
    names = sorted(name for name, value in os.environ.items() if value and CHANGING.fullmatch(name) and name not in quiet)
    words = ", ".join(map(_named, names)) or "nothing is set that changes behaviour"
    if "SLIPSTREAM_TRACE" in names:
        return warning(words, "unset SLIPSTREAM_TRACE when you are done: it writes the words of your chats into a file.")
    return ok(words)


def _named(name: str) -> str:
    value = os.environ[name]
    return f"{name}={value}" if PLAIN.fullmatch(name) and WORD.fullmatch(value) else name


def certificate_files() -> Verdict:
    """Whether the certificates that the environment names are there."""
    named = [name for name in CERTIFICATES if os.environ.get(name)]
    missing = [name for name in named if not Path(os.environ[name]).exists()]
    if missing:
        return warning(f"{missing[0]} names a file that is not there", f"correct or unset {missing[0]}.")
    return ok(f"the system's and {', '.join(named)}" if named else "the system's")


def hub(network: bool) -> Verdict:
    """How the hub would be asked; only where ``network`` it is."""
    from engine.models.hub_client import DEFAULT_ENDPOINT, ask, endpoint, host

    proxies = sorted(kind for kind in urllib.request.getproxies() if kind in ("http", "https", "all"))
    parts = [
        "another address (HF_ENDPOINT)" if endpoint() != DEFAULT_ENDPOINT else host(),
        f"through a proxy for {', '.join(proxies)}" if proxies else "no proxy",
        "an access token" if _has_token() else "no access token (keychain not asked)",
    ]
    words = ", ".join(parts)
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in YES:
        return warning(f"{words}; HF_HUB_OFFLINE forbids asking it", "unset HF_HUB_OFFLINE where models are to be fetched.")
    if not network:
        return ok(f"{words}; not asked (--network does)")
    from engine.models.download_types import DownloadProblem

    try:
        ask("models", {"limit": 1})
    except DownloadProblem as problem:
        return warning(f"{words}; {problem.message.rstrip('.')}", problem.action)
    return ok(f"{words}; it answers")


def _has_token() -> bool:
    return any(os.environ.get(name) for name in TOKENS) or (hub_home() / "token").is_file()
