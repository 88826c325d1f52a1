"""Prefix cache: what earlier prompts and answers left behind, in memory and on disk."""
