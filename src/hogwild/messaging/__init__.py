"""What participants of a run say to each other, and how it arrives: plain data and bookkeeping, no input or output."""
