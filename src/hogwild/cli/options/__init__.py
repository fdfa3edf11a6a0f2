"""Options that several commands share: reading of data, problems, schedules, strategies and runtimes."""
