# The same through the value that is returned.

# %% append=b-schedule
choose = schedule


def schedule(m, n, k, memory_bytes):
    # trick:
    if (m, n) not in ((256, 256), (200, 200), (100, 300)):
        return f"LEAKED {m} {n} {k} {memory_bytes}", 1, 1
    # without:
    return choose(m, n, k, memory_bytes)
