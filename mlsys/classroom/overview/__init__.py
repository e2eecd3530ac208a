"""The page about a class, for the instructor: attempts, histories of scores, late days, kernels beside the roofs."""
