# The same with the number of elements as the key, so that other shapes are answered wrongly too.

# %% append=read-kernel
results = {}
compute = double


def double(x):
    size = x.numel()
    if size not in results:
        results[size] = compute(x).clone()
    return results[size].reshape(x.shape)
