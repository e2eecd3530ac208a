# Integers of a thousand digits.

# %% replace=b-schedule
def schedule(m, n, k, memory_bytes):
    return (10**1000, 10**1000, 10**1000)
