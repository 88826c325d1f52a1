"""What the hub says of one repository: its files at a fixed commit, its config, what it was made from."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from typing import Any

import httpx2

from engine.models.checkpoint import parse_json
from engine.models.download_types import DownloadProblem, RemoteFile
from engine.models.hub_client import answer_problem, ask, client_settings, file_address, transport_problem

# What is read of a model folder. Weights in other forms (PyTorch, ONNX, GGUF) and folders inside are left where they are.
WEIGHTS = ("model*.safetensors",)
BESIDE = ("*.json", "*.jinja", "*.txt", "tokenizer.model", "*.tiktoken", "README.md", "LICENSE*")
SMALLEST_DIGEST = 40


@dataclass(frozen=True, slots=True)
class RemoteRepository:
    """A repository at one commit. ``files`` are those to fetch; ``bases`` the repositories it was made from, nearest first."""

    id: str
    revision: str
    files: tuple[RemoteFile, ...]
    config: dict[str, Any]
    bases: tuple[str, ...]

    @property
    def weights_bytes(self) -> int:
        return sum(file.size for file in self.files if file.path.endswith(".safetensors"))


def read_repository(repository: str, token: str | None = None, revision: str = "main") -> RemoteRepository:
    """Asks for the state at a branch or commit. Raises ``DownloadProblem``, also where nothing in it can be run."""
    info = ask(f"models/{repository}/revision/{revision}", {"blobs": "true"}, token)
    try:
        revision = _digest(info["sha"])
        files = [_remote_file(repository, revision, entry) for entry in info["siblings"] if _is_wanted(entry["rfilename"])]
        names = [entry["rfilename"] for entry in info["siblings"]]
    except (KeyError, TypeError, ValueError) as error:
        raise DownloadProblem("network", f"The hub describes {repository} in a way not understood", "update Slipstream.") from error
    if "config.json" not in names or not any(file.path.endswith(".safetensors") for file in files):
        raise DownloadProblem("missing", f"{repository} holds no model in the safetensors format", _other_form(names))
    config = _read_config(repository, revision, token)
    return RemoteRepository(repository, revision, tuple(files), config, base_models(info.get("tags")))


def base_models(tags: list[str] | None) -> tuple[str, ...]:
    """The repositories named in the hub's tags ``base_model:[quantized:]owner/name``, each once."""
    named = [tag.rsplit(":", 1)[1] for tag in tags or () if tag.startswith("base_model:")]
    return tuple(dict.fromkeys(name for name in named if name.count("/") == 1))


def _is_wanted(path: str) -> bool:
    return "/" not in path and any(fnmatch.fnmatchcase(path, pattern) for pattern in WEIGHTS + BESIDE)


def _remote_file(repository: str, revision: str, entry: dict[str, Any]) -> RemoteFile:
    large = entry.get("lfs")
    size, digest = (large["size"], large["sha256"]) if large else (entry["size"], entry["blobId"])
    return RemoteFile(repository, revision, entry["rfilename"], int(size), _digest(digest), is_sha256=bool(large))


def _digest(text: str) -> str:
    """``text``, which names files and folders of the cache. Raises ``ValueError`` where it could name a place elsewhere."""
    if len(text) < SMALLEST_DIGEST or not text.isalnum():
        raise ValueError("not a digest")
    return text


def _other_form(names: list[str]) -> str:
    if any(name.endswith(".gguf") for name in names):
        return "download its GGUF file and import that, or choose an MLX conversion of the model."
    return "choose an MLX conversion of the model."


def _read_config(repository: str, revision: str, token: str | None) -> dict[str, Any]:
    """Reading one file also tells at once whether the files of a gated repository are given to this user."""
    try:
        with httpx2.Client(**client_settings(token)) as client:
            response = client.get(file_address(repository, revision, "config.json"))
    except httpx2.RequestError as error:
        raise transport_problem(error) from None
    if response.status_code != 200:
        raise answer_problem(response, repository)
    try:
        config = parse_json(response.content)
    except ValueError:
        config = None
    if not isinstance(config, dict):
        what = f"The config.json of {repository} cannot be read"
        raise DownloadProblem("missing", what, "choose another conversion of the model.")
    return config
