"""Judge many submissions side by side, and choose the attempt that counts."""
