"""Packed folders: shuffled on disk once, memory-mapped ever after, and possibly larger than memory."""
