"""Times the store on a real file: python -m tests.app.store.benchmark (prints figures, asserts nothing)."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from app.store import ChatStore


@contextmanager
def timed(what: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    print(f"{what}: {1000 * (time.perf_counter() - start):.1f} ms")


def main() -> None:
    pick = random.Random(1)
    words = ["".join(pick.choices("abcdefghijklmnop", k=pick.randint(2, 9))) for _ in range(5000)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chats.db"
        store = ChatStore(path)
        chat = store.create_chat("benchmark")
        with timed("write 1,000 messages of 200 words"):
            for _ in range(1000):
                store.add_message(chat.id, "user", " ".join(pick.choices(words, k=200)), "sent")
        store.close()
        with timed("open the file, read 1,000 messages"):
            store = ChatStore(path)
            store.messages(chat.id)
        for query in (" ".join(words[:2]), words[0][:2], "zzz"):
            with timed(f"search {query!r}"):
                store.search(query)
        answer, text = store.add_message(chat.id, "assistant", "", "streaming"), " ".join(pick.choices(words, k=5500))
        spent = []
        for length in range(0, 32_000, 100):
            start = time.perf_counter()
            store.update_message(answer.id, text[:length])
            spent.append(1000 * (time.perf_counter() - start))
        print(f"update a growing answer up to 32,000 characters: median {median(spent):.2f} ms, worst {max(spent):.1f} ms")
        with timed("finish it (enters the search index)"):
            store.update_message(answer.id, state="done")
        pasted = " ".join(pick.choices(words, k=800_000))
        with timed(f"add a message of {len(pasted) / 1e6:.1f} million characters"):
            store.add_message(chat.id, "user", pasted, "sent")
        store.close()


if __name__ == "__main__":
    main()
