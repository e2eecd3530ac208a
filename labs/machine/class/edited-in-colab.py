# A right submission as it comes back from Colab: a test of a weakened, the feed of b rewritten so that nothing enters, one test
# cell copied, one deleted, cell ids replaced. Points: all.

# %% solve=*

# %% replace=c-why
A tile costs max(m, 382) cycles on the plain array, max(m, 255) with a wire for each column, and max(m, 510) on the wide one, which
has half as many tiles. Batch 16: 391,000, 261,000 and 261,000 cycles; batch 256: 391,000, 263,000 and 261,000; batch 4096: 4.19,
4.19 and 2.10 million. With few inputs loading decides, so wires and width gain a third; with many, only more multipliers help. For
single users I would build the wires, which are cheaper, and load more rows of weights per cycle.

# %% replace=a-test
pe_array.assert_step(pe_step(3, 5, 2, 0, 10, None), (3, 5), 2, 0, 10, None)

# %% replace=b-feed
def starts(tiles, stream, rows, cols):
    return [0] * tiles


def feed(weights, inputs, rows, cols):
    return []

# %% copy=c-test

# %% delete=b-test

# %% colab
