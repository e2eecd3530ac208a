# Right; a progress bar and warnings on stderr, prints on stdout.

# %% solve=a-predict,b-kernel
# %% replace=c-sum
import sys
import time
import warnings


def add_three(x, y, z):
    for percent in range(0, 101, 20):
        sys.stderr.write(f"\r{'#' * percent} {percent}%")
        sys.stderr.flush()
    warnings.warn("a small tensor")
    print("done", file=sys.stderr)
    print({"sum": 3})
    return add(add(x, y), z)
