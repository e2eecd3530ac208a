"""What runs in the processes of a sandbox: a student's cells, and checked kernels."""
