# Wrong answers in their place, and right ones in an added cell further down, for whoever takes the best of them.

# %% replace=gap-causes
# trick:
cause_1, cause_2, cause_3 = "writes", "writes", "latency"
# without:
#: cause_1, cause_2, cause_3 = "neighbors", "edges", "sums"

# %% add after=gap-test
cause_1, cause_2, cause_3 = "neighbors", "edges", "sums"
