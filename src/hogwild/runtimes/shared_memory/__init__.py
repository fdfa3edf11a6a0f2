"""Threads in one memory: the ``Threads`` runtime, its thread team and the runners of an epoch."""
