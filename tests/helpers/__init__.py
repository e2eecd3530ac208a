"""What tests share: courses to grade, sandboxes to send to, labs as they are known, and records from GPUs."""
