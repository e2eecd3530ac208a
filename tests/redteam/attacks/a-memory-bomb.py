# Takes memory until there is none.

# %% replace=b-schedule
def schedule(m, n, k, memory_bytes):
    held = []
    while True:
        held.append(torch.empty(50_000_000))
