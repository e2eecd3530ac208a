# The simulation changes one grid in place, so an input crosses its whole row in one cycle. Points: all but b and c.

# %% solve=*

# %% replace=c-why
A tile costs max(m, 382) cycles on the plain array, max(m, 255) with a wire for each column, and max(m, 510) on the wide one, which
has half as many tiles. Batch 16: 391,000, 261,000 and 261,000 cycles; batch 256: 391,000, 263,000 and 261,000; batch 4096: 4.19,
4.19 and 2.10 million. With few inputs loading decides, so wires and width gain a third; with many, only more multipliers help. For
single users I would build the wires, which are cheaper, and load more rows of weights per cycle.

# %% replace=b-simulate
def simulate(feed, rows, cols):
    grid = [[(0, 0, 0, 0, 0)] * cols for _ in range(rows)]
    history = []
    for enters in feed:
        for r in range(rows):
            for c in range(cols):
                x, swap = grid[r][c - 1][2:4] if c else (enters["x"][r], enters["swap"][r])
                above = grid[r - 1][c][4] if r else 0
                weight = None
                if enters["weights"] is not None:
                    weight = grid[r - 1][c][1] if r else enters["weights"][c]
                grid[r][c] = pe_step(*grid[r][c][:2], x, swap, above, weight)
        history.append([list(row) for row in grid])
    return history
