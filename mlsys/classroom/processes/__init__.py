"""Processes of a grading run: workers that judge, and the helper that reads what students wrote."""
