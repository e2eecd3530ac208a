# Cycles of a thousand digits.

# %% replace=challenge-schedule
def double_buffered(folds, m, rows, cols):
    # trick:
    late = 10**1000
    return {
        "swap": [late + fold for fold in range(folds)],
        "b": [[[late] * cols for p in range(rows)] for f in range(folds)],
        "a": [[[late] * rows for i in range(m)] for f in range(folds)],
    }
    # without:
    #: swap = [rows + fold * max(m, 2 * rows - 1) for fold in range(folds)]
    #: return {
    #:     "swap": swap,
    #:     "b": [[[s + j - 1 - p for j in range(cols)] for p in range(rows)] for s in swap],
    #:     "a": [[[s + i + p for p in range(rows)] for i in range(m)] for s in swap],
    #: }
