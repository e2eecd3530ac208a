collect_ignore = ["attacks", "accidents", "gpu"]  # submissions, not modules
