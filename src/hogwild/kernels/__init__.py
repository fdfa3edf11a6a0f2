"""Compiled inner loops of all problems: every kernel reads arrays and writes arrays."""
