"""Marking by question across a class: a local page with a rubric, whose marks go into the gradebook."""
