"""Commands that make files for a course from the book."""
