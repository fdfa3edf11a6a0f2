"""The verb: checks the combination, starts the runtime, steers the run to its end."""
