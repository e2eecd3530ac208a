# The bandwidth comes in GiB per second, as a progress bar would print it, and the peak in TFLOP/s. Points: all but a.

# %% solve=*

# %% replace=a-roofs
import statistics


def copy_bandwidth(array_bytes, laps_s):
    return 2 * array_bytes / 2**30 / statistics.median(laps_s)


def product_rate(side, laps_s):
    return 2 * side**3 / 1e12 / statistics.median(laps_s)


def ridge_point(bandwidth, peak):
    return 1e12 * peak / (bandwidth * 2**30)


def attainable(intensity, bandwidth, peak):
    return min(peak, bandwidth * intensity)

# %% replace=why
The small product has the largest gap. An eighth of it takes as long as all of it, so the factor of the start is 8: the time is
that of a launch, and many small products should go into one call. Softmax in five steps moves 8 passes of bytes where 2 are
compulsory, a factor of 4, and an eighth of the work takes an eighth of the time; a fused kernel would read and write once.
