# Recurses in C until the stack is full.

# %% replace=b-schedule
import ctypes
import sys

sys.setrecursionlimit(10**9)


def schedule(m, n, k, memory_bytes):
    again = ctypes.CFUNCTYPE(None)(lambda: schedule(m, n, k, memory_bytes))
    again()
