"""How the prompt gets into the caches."""
