"""What coordinators, servers and workers do: state machines that react to events with actions."""
