"""Scores in the gradebook file that Canvas exports and imports."""
