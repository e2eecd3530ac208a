"""Compare a result with its reference, and say what is wrong, where, and what usually causes it."""
