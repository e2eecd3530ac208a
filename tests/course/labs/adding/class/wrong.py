# One element of b is wrong; c swallows the interrupt and never ends.

# %% solve=a-predict
# %% replace=b-kernel
def add(x, y):
    z = x + y
    z[3] = 7
    return z
# %% replace=c-sum
def add_three(x, y, z):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
