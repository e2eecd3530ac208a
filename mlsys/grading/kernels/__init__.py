"""Kernels that a student wrote: read from their text, launched, checked and timed by the course's own code."""
