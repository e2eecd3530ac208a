# a and e are right; c has the count right and takes the first point near the peak for the ridge; the rest is as released.
# Points: a, e.

# %% solve=gap-predictions,a-roofs,e-costs

# %% replace=c-ridge
def chain_cost(rows, cols, steps, itemsize):
    return rows * cols * (2 * steps + 1), rows * cols * itemsize + 4 * (steps + rows)


def find_ridge(intensities, rates):
    peak = max(rates)
    return next(i for i, rate in zip(intensities, rates) if rate >= 0.95 * peak)
