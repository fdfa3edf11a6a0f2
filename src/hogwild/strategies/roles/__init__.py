"""Roles of coordinators, servers and workers: state machines that react to events with actions."""
