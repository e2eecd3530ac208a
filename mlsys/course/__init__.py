"""The instructor's side of the course: labs are parsed, released, published, and a sample class is built from them."""
