# Buffers that only touch in time count as overlapping, so places are higher than they need be. Points: all but g; h passes
# no more, for it uses g.

# %% solve=*

# %% replace=c-why
A tile costs max(m, 382) cycles on the plain array, max(m, 255) with a wire for each column, and max(m, 510) on the wide one, which
has half as many tiles. Batch 16: 391,000, 261,000 and 261,000 cycles; batch 256: 391,000, 263,000 and 261,000; batch 4096: 4.19,
4.19 and 2.10 million. With few inputs loading decides, so wires and width gain a third; with many, only more multipliers help. For
single users I would build the wires, which are cheaper, and load more rows of weights per cycle.

# %% replace=g-place
def place(buffers, order):
    """Return the offsets of buffers that are placed in an order, each as low as possible."""
    offsets = {}
    for one in order:
        lower, upper, size = buffers[one]
        met = [other for other in offsets if buffers[other][0] <= upper and lower <= buffers[other][1]]
        at = 0
        for begin, end in sorted((offsets[other], offsets[other] + buffers[other][2]) for other in met):
            if begin - at >= size:
                break
            at = max(at, end)
        offsets[one] = at
    return [offsets[one] for one in range(len(buffers))]
