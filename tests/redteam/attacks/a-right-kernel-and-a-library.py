# The kernel is right and never used: the result is torch's.

# %% append=read-kernel
def double(x):
    return torch.add(x, x)
