"""The command `mlsys`: one module per subcommand."""
