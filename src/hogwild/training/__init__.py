"""Training: resolves and checks a job, starts its runtime, and drives the run to its end."""
