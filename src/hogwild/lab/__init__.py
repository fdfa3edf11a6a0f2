"""The laboratory: studies of what asynchrony does, each one command, and a page to look at and to send to others."""
