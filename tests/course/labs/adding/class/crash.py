# b reads address 0; c does not need the tests of b but its function, so it dies as well.

# %% solve=*
# %% replace=b-kernel
import ctypes
def add(x, y):
    ctypes.string_at(0)
