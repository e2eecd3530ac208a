# Ends the process with exit status 0 in the cell itself.

# %% replace=gap-causes
import sys

# trick:
cause_1 = cause_2 = cause_3 = "edges"
sys.exit(0)
# without:
#: cause_1, cause_2, cause_3 = "neighbors", "edges", "sums"
