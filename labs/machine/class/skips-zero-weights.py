# A weight of 0 counts as none, so it never moves down. Points: all but a, and b and c, which use it.

# %% solve=*

# %% replace=c-why
A tile costs max(m, 382) cycles on the plain array, max(m, 255) with a wire for each column, and max(m, 510) on the wide one, which
has half as many tiles. Batch 16: 391,000, 261,000 and 261,000 cycles; batch 256: 391,000, 263,000 and 261,000; batch 4096: 4.19,
4.19 and 2.10 million. With few inputs loading decides, so wires and width gain a third; with many, only more multipliers help. For
single users I would build the wires, which are cheaper, and load more rows of weights per cycle.

# %% replace=a-step
def pe_step(weight, spare, x, swap, sum_above, weight_above):
    if swap:
        weight = spare
    return weight, weight_above or spare, x, swap, sum_above + x * weight
