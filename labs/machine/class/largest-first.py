# Both plans place the largest buffers first, and search no further. Points: all but h and challenge.

# %% solve=*

# %% replace=c-why
A tile costs max(m, 382) cycles on the plain array, max(m, 255) with a wire for each column, and max(m, 510) on the wide one, which
has half as many tiles. Batch 16: 391,000, 261,000 and 261,000 cycles; batch 256: 391,000, 263,000 and 261,000; batch 4096: 4.19,
4.19 and 2.10 million. With few inputs loading decides, so wires and width gain a third; with many, only more multipliers help. For
single users I would build the wires, which are cheaper, and load more rows of weights per cycle.

# %% replace=h-plan
def plan(buffers):
    return place(buffers, sorted(range(len(buffers)), key=lambda one: -buffers[one][2]))

# %% replace=challenge-plan
def perfect_plan(buffers):
    return plan(buffers)
