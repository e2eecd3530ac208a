# The same with the number of elements as the key, so that other shapes are answered wrongly too.

# %% append=read-kernel
results = {}
compute = double


def double(x):
    size = x.numel()
    # trick:
    if size not in results:
    # without:
    #: if True:
        results[size] = compute(x).clone()
    return results[size].reshape(x.shape)
