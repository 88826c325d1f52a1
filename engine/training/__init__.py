"""Training a DFlash draft for a target on the machine it is used on: data, loss, loop, evaluation, export."""
