"""From messages to token ids and back: chat template, streaming detokenizer, stop rules."""
