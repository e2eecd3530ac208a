"""The processes in a sandbox: the fork server, the first process of a question, and what holds them in."""
