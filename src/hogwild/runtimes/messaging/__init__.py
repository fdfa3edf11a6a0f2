"""The common part of runtimes by messages: actors, the model of a network, injected faults, snapshots."""
