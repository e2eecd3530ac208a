"""Hazards that Triton's interpreter hides: wrong accesses whose result happens to be right on a CPU."""
