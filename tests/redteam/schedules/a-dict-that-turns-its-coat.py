# A dict that shows other items to each who looks.

# %% replace=challenge-schedule
class Turning(dict):
    def items(self):
        return [("swap", [3]), ("a", [[[3]]]), ("b", [[[2]]])]

    def keys(self):
        return ["swap", "a", "b"]

    def __getitem__(self, key):
        return 0

def double_buffered(folds, m, rows, cols):
    # trick:
    return Turning(swap=[rows] * folds, a=[], b=[])
    # without:
    #: swap = [rows + fold * max(m, 2 * rows - 1) for fold in range(folds)]
    #: return {
    #:     "swap": swap,
    #:     "b": [[[s + j - 1 - p for j in range(cols)] for p in range(rows)] for s in swap],
    #:     "a": [[[s + i + p for p in range(rows)] for i in range(m)] for s in swap],
    #: }
