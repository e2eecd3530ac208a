"""Commands of the submit queue."""
