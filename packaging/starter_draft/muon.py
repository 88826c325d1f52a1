"""The optimiser: Muon for matrices, AdamW for the rest, over a plain dictionary of parameters."""

from __future__ import annotations

from collections import defaultdict

import torch
from torch import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # quintic Newton-Schulz of the Muon reference
STEPS = 5


def orthogonalise(stack: Tensor) -> Tensor:
    """The nearest matrices with equal singular values to a stack [n, rows, columns]; bf16 inside."""
    a, b, c = COEFFICIENTS
    x = stack.to(torch.bfloat16)
    wide = x.shape[-2] > x.shape[-1]
    x = x.mT if wide else x
    x = x / (x.float().norm(dim=(-2, -1), keepdim=True).to(x.dtype) + 1e-7)
    for _ in range(STEPS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.mT if wide else x).float()


class Muon:
    """Nesterov momentum, orthogonalised and scaled to the size of an AdamW step, so that one learning rate serves both."""

    def __init__(self, parameters: dict[str, Tensor], matrices: bool, betas: tuple[float, float] = (0.9, 0.95)):
        self.parameters = parameters
        groups: dict[tuple[int, ...], list[str]] = defaultdict(list)
        for name, value in parameters.items():
            if matrices and value.dim() == 2:
                groups[tuple(value.shape)].append(name)
        self._groups = list(groups.values())
        self._momentum = {name: torch.zeros_like(parameters[name]) for group in self._groups for name in group}
        rest = [value for name, value in parameters.items() if name not in self._momentum]
        self._adam = torch.optim.AdamW(rest, lr=1e-3, betas=betas, weight_decay=0.0, fused=rest[0].is_cuda)

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """One update from the parameters' gradients, which are then cleared."""
        for group in self._adam.param_groups:
            group["lr"] = rate
        self._adam.step()
        for names in self._groups:
            gradients = torch.stack([self.parameters[name].grad for name in names])  # type: ignore[misc]
            momentum = torch.stack([self._momentum[name] for name in names]).lerp_(gradients, 0.05)
            for name, value in zip(names, momentum, strict=True):
                self._momentum[name].copy_(value)
            update = orthogonalise(gradients.lerp(momentum, 0.95))
            scale = 0.2 * max(update.shape[-2:]) ** 0.5
            for name, value in zip(names, update, strict=True):
                self.parameters[name].add_(value, alpha=-rate * scale)
        for value in self.parameters.values():
            value.grad = None

    def state(self) -> dict[str, object]:
        return {"momentum": self._momentum, "adam": self._adam.state_dict()}

    def load(self, state: dict[str, object]) -> None:
        for name, value in state["momentum"].items():  # type: ignore[attr-defined]
            self._momentum[name].copy_(value)
        self._adam.load_state_dict(state["adam"])  # type: ignore[arg-type]
