# The smallest tiles there are: their replay takes as many steps as the product has multiplications.

# %% replace=b-schedule
def schedule(m, n, k, memory_bytes):
    return (1, 1, 1)
