"""Take in submissions: whose file each is, what can be read of it, and the notebook that is judged."""
