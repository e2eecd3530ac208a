# Reads address 8.

# %% replace=d-config
import ctypes


def config(shape, dtype):
    return ctypes.string_at(8)
