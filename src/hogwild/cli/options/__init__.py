"""Options that several commands share: how data is read, problems, schedules, strategies, runtimes."""
