"""Handing in from a notebook: the notebook's own file, and the course's queue."""
