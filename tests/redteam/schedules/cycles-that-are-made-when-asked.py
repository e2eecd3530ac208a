# Objects that make up an integer each time they are asked for one.

# %% replace=b-schedule
import random


class Later:
    def __index__(self):
        return random.randrange(10)

    __int__ = __index__

def weight_stationary(m, n, k):
    # trick:
    return {
        "b": [[Later() for _ in range(n)] for _ in range(k)],
        "a": [[Later() for _ in range(k)] for _ in range(m)],
        "c": [[Later() for _ in range(n)] for _ in range(m)],
    }
    # without:
    #: return {
    #:     "b": [[k - 1 - p] * n for p in range(k)],
    #:     "a": [[k + i + p for p in range(k)] for i in range(m)],
    #:     "c": [[2 * k + i - 1 + j for j in range(n)] for i in range(m)],
    #: }
