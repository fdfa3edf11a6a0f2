"""Local trainers of message-passing workers: one module for each kind of problem."""
