"""What is kept of a class: the record of each submission and the state of each run."""
