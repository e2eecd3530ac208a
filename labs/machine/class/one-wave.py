# The results are read from the last row as if all columns finished at the same time. Points: all but c.

# %% solve=*

# %% replace=c-why
A tile costs max(m, 382) cycles on the plain array, max(m, 255) with a wire for each column, and max(m, 510) on the wide one, which
has half as many tiles. Batch 16: 391,000, 261,000 and 261,000 cycles; batch 256: 391,000, 263,000 and 261,000; batch 4096: 4.19,
4.19 and 2.10 million. With few inputs loading decides, so wires and width gain a third; with many, only more multipliers help. For
single users I would build the wires, which are cheaper, and load more rows of weights per cycle.

# %% replace=c-multiply
def multiply(a, b, rows, cols):
    """Return (C, cycles) of C = A B on a rows x cols array."""
    m, k, n = len(a), len(b), len(b[0])
    corners = [(top, left) for top in range(0, k, rows) for left in range(0, n, cols)]
    weights, inputs = [], []
    for top, left in corners:
        piece = [[b[p][j] if p < k and j < n else 0 for j in range(left, left + cols)] for p in range(top, top + rows)]
        weights.append(piece)
        inputs.append([[row[p] if p < k else 0 for p in range(top, top + rows)] for row in a])
    enters = feed(weights, inputs, rows, cols)
    history = simulate(enters, rows, cols)
    c = [[0] * n for _ in range(m)]
    for (_, left), first in zip(corners, starts(len(corners), m, rows, cols), strict=True):
        for number in range(m):
            for col in range(min(cols, n - left)):
                c[number][left + col] += history[first + number + rows - 1][rows - 1][col][4]
    return c, len(enters)


def product_cycles(m, n, k, rows, cols):
    """Return the cycles that `multiply` counts."""
    tiles = -(-k // rows) * -(-n // cols)
    return rows + (tiles - 1) * max(m, 2 * rows + cols - 2) + m + rows + cols - 2
