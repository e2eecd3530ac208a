"""Who is in the class: the roster, due times, and every attempt of a student."""
