# b ends the process by itself; c asks for a terabyte.

# %% solve=*
# %% replace=b-kernel
import os
def add(x, y):
    os._exit(0)
# %% replace=c-sum
def add_three(x, y, z):
    return torch.empty(1 << 38).fill_(1)
