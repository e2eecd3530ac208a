"""Commands about a whole class."""
