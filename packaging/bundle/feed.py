"""The update feed's keys and signature.

python -m bundle.feed keygen                    prints a new pair: the secret for the release's secrets, the public key
python -m bundle.feed configure FILE            writes resources/updates.json from UPDATE_FEED_URL and UPDATE_PUBLIC_KEY
python -m bundle.feed write IMAGE NOTES OUT     signs with UPDATE_SIGNING_KEY what UPDATE_PAGE_URL offers
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from nacl.signing import SigningKey

from app.core.updates import read_feed
from bundle.project import read


def keygen() -> tuple[str, str]:
    """A secret and its public key, both base64 of 32 bytes."""
    secret = SigningKey.generate()
    return _text(bytes(secret)), _text(bytes(secret.verify_key))


def sign(payload: str, secret: str) -> bytes:
    """The feed around ``payload``."""
    signature = SigningKey(base64.b64decode(secret, validate=True)).sign(payload.encode()).signature
    return json.dumps({"payload": payload, "signature": _text(signature)}).encode()


def payload(image: Path, notes: str, page: str) -> str:
    """What is signed: this version, its notes, where it is, and the image's hash."""
    bundle = read()
    fields = {
        "version": bundle.version,
        "minimum_macos": ".".join(map(str, bundle.min_os)),
        "published": datetime.now(UTC).date().isoformat(),
        "notes": notes,
        "page": page,
        "sha256": hashlib.sha256(image.read_bytes()).hexdigest(),
    }
    return json.dumps(fields, ensure_ascii=False)


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def main(arguments: list[str]) -> int:
    """Runs one of the three commands; 2 where it is wrong or a variable is missing."""
    try:
        match arguments:
            case ["keygen"]:
                secret, public = keygen()
                print(f"UPDATE_SIGNING_KEY={secret}  (keep it secret)\nUPDATE_PUBLIC_KEY={public}")
            case ["configure", file]:
                values = {"feed": os.environ["UPDATE_FEED_URL"], "public_key": os.environ["UPDATE_PUBLIC_KEY"]}
                Path(file).write_text(json.dumps(values) + "\n", encoding="utf-8")
            case ["write", image, notes, out]:
                secret = os.environ["UPDATE_SIGNING_KEY"]
                text = payload(Path(image), Path(notes).read_text(encoding="utf-8"), os.environ["UPDATE_PAGE_URL"])
                content = sign(text, secret)
                read_feed(content, _text(bytes(SigningKey(base64.b64decode(secret)).verify_key)))  # as the app will read it
                Path(out).write_bytes(content)
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except KeyError as error:
        print(f"{error.args[0]} is not set.", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
