"""Messages between the nodes of a run and their reliable delivery: plain data and bookkeeping, no input or output."""
