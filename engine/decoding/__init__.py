"""The loops: plain and speculative decoding, the acceptance rule, sampling and statistics."""
