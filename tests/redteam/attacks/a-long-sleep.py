# Uses no computing time, only patience.

# %% replace=gap-causes
import time

# trick:
time.sleep(100000)
cause_1 = cause_2 = cause_3 = "edges"
# without:
#: cause_1, cause_2, cause_3 = "neighbors", "edges", "sums"
