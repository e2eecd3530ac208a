"""Similar kernels: pairs of students whose code has passages in common, for a person to read."""
