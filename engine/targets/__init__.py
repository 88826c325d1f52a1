"""How a target family runs: one protocol, one file for each kind of family."""
