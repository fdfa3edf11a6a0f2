"""Common part of the message-passing runtimes: actors, network model, fault injection and snapshots."""
