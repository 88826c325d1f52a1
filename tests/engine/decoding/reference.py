"""Sampling settings by their definitions, in NumPy and plain loops: what the distribution of the next token has to be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.request import GenerationRequest


def penalised(logits: np.ndarray, request: GenerationRequest, prompt: Sequence[int], answer: Sequence[int]) -> np.ndarray:
    """Float64 [V]: bias, repetition, frequency and presence penalty."""
    logits = logits.astype(np.float64).copy()
    for token, bias in dict(request.logit_bias).items():
        logits[token] += bias
    for token in {*prompt, *answer}:
        logits[token] = (
            logits[token] / request.repetition_penalty if logits[token] > 0 else logits[token] * request.repetition_penalty
        )
    for token in answer:
        logits[token] -= request.frequency_penalty
    for token in set(answer):
        logits[token] -= request.presence_penalty
    return logits


def cut(probabilities: np.ndarray, top_k: int, top_p: float, min_p: float) -> np.ndarray:
    """[V], renormalised; of tokens tied at an edge those with the lower id stay."""
    order = sorted(range(len(probabilities)), key=lambda token: (-probabilities[token], token))
    kept = order[:top_k] if top_k else order
    total, share, nucleus = sum(probabilities[token] for token in kept), 0.0, []
    for token in kept:
        if share >= top_p:
            break
        nucleus.append(token)
        share += probabilities[token] / total
    result = np.zeros(len(probabilities))
    for token in nucleus:
        if probabilities[token] >= min_p * probabilities[order[0]]:
            result[token] = probabilities[token]
    return result / result.sum()


def next_token(logits: np.ndarray, request: GenerationRequest, prompt: Sequence[int], answer: Sequence[int]) -> np.ndarray:
    """The probabilities [V] of the token that follows ``prompt`` and ``answer``; ``request.temperature`` is above 0."""
    scaled = penalised(logits, request, prompt, answer) / request.temperature
    weights = np.exp(scaled - scaled.max())
    return cut(weights / weights.sum(), request.top_k, request.top_p, request.min_p)
