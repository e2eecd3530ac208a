# A hundred megabytes on both streams, and a wrong answer.

# %% replace=d-config
import sys


def config(shape, dtype):
    for _ in range(50):
        print("x" * 1_000_000)
        sys.stderr.write("y" * 1_000_000)
    return {}
