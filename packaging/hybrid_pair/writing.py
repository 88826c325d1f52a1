"""The finished target answers prompts greedily, many in lock step: the draft learns from what its target really says."""

from __future__ import annotations

import torch
from hybrid import Hybrid, Stepper
from selfplay import loops
from texts import END
from torch import Tensor


class Writer:
    """Rows in lock step. On a GPU a step is one captured graph."""

    def __init__(self, model: Hybrid, rows: int, length: int):
        device = model.embedding.device
        self.stepper, self.rows, self.length = Stepper(model, rows, length), rows, length
        self.ids = torch.zeros(rows, length, dtype=torch.long, device=device)
        self.given = torch.zeros(rows, dtype=torch.long, device=device)  # prompt lengths
        self.position = torch.zeros(1, dtype=torch.long, device=device)
        self._graph: torch.cuda.CUDAGraph | None = None

    @torch.no_grad()
    def write(self, prompts: list[list[int]]) -> tuple[Tensor, Tensor]:
        """ids [R, L] and offsets [R, L]: 1, 2, ... inside an answer up to its end token or the first loop, 0 elsewhere. There are
        at most ``rows`` prompts, each shorter than a row."""
        ids, given = torch.zeros(self.ids.shape, dtype=torch.long), torch.ones(self.rows, dtype=torch.long)
        for row, prompt in enumerate(prompts):
            ids[row, : len(prompt)] = torch.tensor(prompt)
            given[row] = len(prompt)
        self.ids.copy_(ids)
        self.given.copy_(given)
        self.stepper.restart()
        self.position.zero_()
        if self.ids.is_cuda and self._graph is None:
            self._capture()
        for _ in range(self.length - 1):
            if self._graph is not None:
                self._graph.replay()
            else:
                self._step()
        written = self.ids[: len(prompts)].clone()
        offsets = answer_offsets(written, self.given[: len(prompts)])
        return written, offsets.masked_fill(loops(written, offsets), 0)

    def _step(self) -> None:
        tokens = self.ids.gather(1, self.position.expand(self.rows)[:, None])[:, 0]
        chosen = self.stepper.step(tokens, self.position).argmax(-1)
        self.position.add_(1)
        written = self.ids.gather(1, self.position.expand(self.rows)[:, None])[:, 0]
        following = torch.where(self.position < self.given, written, chosen)
        self.ids.index_copy_(1, self.position, following[:, None])

    def _capture(self) -> None:
        """Capture itself runs nothing; what the warm-up did is undone."""
        prompts = self.ids.clone()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._step()
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._step()
        self.ids.copy_(prompts)
        self.stepper.restart()
        self.position.zero_()


def answer_offsets(ids: Tensor, given: Tensor) -> Tensor:
    """1, 2, ... [R, L] from the end of the prompt to the first end token (counted too), 0 elsewhere."""
    place = torch.arange(ids.shape[1], device=ids.device)
    inside = place >= given[:, None]
    ended = ((ids == END) & inside).long().cumsum(1)
    before = torch.nn.functional.pad(ended[:, :-1], (1, 0))
    return (place - given[:, None] + 1) * (inside & (before == 0))
