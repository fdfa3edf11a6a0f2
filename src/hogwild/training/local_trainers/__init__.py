"""How one worker of a strategy by messages learns: one file for each kind of problem."""
