# Lists that say they have the right length, and hand out nothing.

# %% replace=b-schedule
class Pretending(list):
    def __init__(self, length):
        super().__init__()
        self.length = length

    def __len__(self):
        return self.length

    def __iter__(self):
        return iter([Pretending(self.length)] * self.length)

    def __getitem__(self, index):
        return 0

def weight_stationary(m, n, k):
    # trick:
    return {"b": Pretending(k), "a": Pretending(m), "c": Pretending(m)}
    # without:
    #: return {
    #:     "b": [[k - 1 - p] * n for p in range(k)],
    #:     "a": [[k + i + p for p in range(k)] for i in range(m)],
    #:     "c": [[2 * k + i - 1 + j for j in range(n)] for i in range(m)],
    #: }
