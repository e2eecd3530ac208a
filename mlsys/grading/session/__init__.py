"""What a notebook keeps for its student between runs: the work log, and answers for a machine that is taken away."""
