# The ridge point is bandwidth over peak, in a and in the sweep of c. In d the race is won and the sweep's ridge is wrong.
# Points: all but a, c, d.

# %% solve=*

# %% replace=a-roofs
import statistics


def copy_bandwidth(array_bytes, laps_s):
    return 2 * array_bytes / statistics.median(laps_s)


def product_rate(side, laps_s):
    return 2 * side**3 / statistics.median(laps_s)


def ridge_point(bandwidth, peak):
    return bandwidth / peak


def attainable(intensity, bandwidth, peak):
    return min(peak, bandwidth * intensity)

# %% replace=c-ridge
def chain_cost(rows, cols, steps, itemsize):
    return rows * cols * (2 * steps + 1), rows * cols * itemsize + 4 * (steps + rows)


def find_ridge(intensities, rates):
    return max(rate / intensity for intensity, rate in zip(intensities, rates)) / max(rates)

# %% replace=why
The small product has the largest gap. An eighth of it takes as long as all of it, so the factor of the start is 8: the time is
that of a launch, and many small products should go into one call. Softmax in five steps moves 8 passes of bytes where 2 are
compulsory, a factor of 4, and an eighth of the work takes an eighth of the time; a fused kernel would read and write once.
