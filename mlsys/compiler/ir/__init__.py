"""What the stages pass on: graphs, expressions of one element, and index expressions."""
