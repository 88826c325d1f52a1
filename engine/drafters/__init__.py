"""How a drafter proposes: one protocol, one package or file for each drafter."""
