"""Laboratory: studies of the effects of asynchrony, each run by one command, and a report to share."""
