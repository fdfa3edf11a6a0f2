"""Packed folders: shuffled on disk once, then memory-mapped, and possibly larger than memory."""
