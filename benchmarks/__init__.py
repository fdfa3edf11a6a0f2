"""What is fast, measured: one file per question, each leaves a table in ``results/``."""
