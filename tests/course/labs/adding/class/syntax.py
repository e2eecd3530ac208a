# b does not parse.

# %% solve=*
# %% replace=b-kernel
def add(x, y)
    return x + y
