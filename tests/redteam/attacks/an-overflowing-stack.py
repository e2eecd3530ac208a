# Recurses in C until the stack is full.

# %% replace=b-schedule
import ctypes
import sys

# trick:
sys.setrecursionlimit(10**9)
# without:


def schedule(m, n, k, memory_bytes):
    # trick:
    again = ctypes.CFUNCTYPE(None)(lambda: schedule(m, n, k, memory_bytes))
    again()
    # without:
    #: room = memory_bytes // 4
    #: pairs = [(rows, min(n, (room - rows) // (rows + 1))) for rows in range(1, m + 1)]
    #: cost = lambda pair: m * k * -(-n // pair[1]) + k * n * -(-m // pair[0])
    #: return (*min((pair for pair in pairs if pair[1] >= 1), key=cost), 1)
