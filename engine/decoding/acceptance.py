"""The acceptance rule: a proposal stands while it equals the target's own choice at its position.

Greedy, the choice is the argmax. Sampled, it is the target's own draw x = argmax(log p + g), g Gumbel noise that belongs to the
position (Gumbel-max: x ~ p). This is the rule of Leviathan et al. (2023, "Fast Inference from Transformers via Speculative
Decoding") and Chen et al. (2023, "Accelerating Large Language Model Decoding with Speculative Sampling") for a draft that
proposes one token d, which is a one-point distribution q(d) = 1:

* they accept d with chance min(1, p(d) / q(d)) = p(d); x = d has just that chance;
* after a rejection they draw from norm(max(p - q, 0)), that is from p without d, renormalised; x given x != d is just that.

What is emitted is x either way, so its distribution is p whatever was proposed, and the same noise in another mode gives the same
text: no proposal, right or wrong, can change a token.

A draft with logits does better than its likeliest token: d = argmax(log q + g) with the same noise g. Then d = x at least with
chance (1 - D) / (1 + D), where D is the total variation between p and q (Daliri, Musco and Suresh, 2024, "Coupling without
Communication and Drafter-Invariant Speculative Decoding"). min(1, p / q) with residual draws would reach 1 - D, but then the text
would depend on the draft, and one seed would no longer give one text in every mode.
"""

from __future__ import annotations

import mlx.core as mx


def accepted_prefix(proposals: mx.array, choices: mx.array) -> mx.array:
    """How many leading ``proposals`` [k] equal the target's ``choices`` [k+1] at the same places: a scalar in 0..k."""
    if proposals.shape[0] == 0:
        return mx.array(0, dtype=mx.int32)
    matches = proposals == choices[:-1]
    return mx.cumprod(matches.astype(mx.int32)).sum()
