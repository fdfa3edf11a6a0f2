"""``Threads`` runtime: worker threads in one memory, the thread team and the runners of an epoch."""
