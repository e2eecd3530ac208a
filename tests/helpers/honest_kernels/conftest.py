collect_ignore_glob = ["*.py"]  # cells, not modules
