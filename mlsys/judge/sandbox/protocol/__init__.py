"""What crosses the wall of a sandbox, and within which limits: messages, tensors, the end of a run."""
