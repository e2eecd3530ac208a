# Every fold is counted as a full one, as the chapter does, and the batch is rounded down. Points: all but c.

# %% solve=*

# %% replace=c-why
On the 128 x 128 array a fold takes 382 + T cycles: 8 of 390 are useful at batch 8 (2.1%), 4096 of 4478 at batch 4096 (91%). On
32 x 32 it is 94 + T: 7.8% and 98%. With 16 times as many folds on 16 arrays, the small ones are 3.8 times as fast at batch 8
and 1.07 times at batch 4096. But an input serves 32 columns instead of 128, so on-chip memory is read four times as often. I
would build small arrays for fast answers and the large one for training. Software can batch the requests of several users.

# %% replace=c-cycles
def product_cycles(m, n, k, rows, cols, dataflow):
    down, stream = (k, m) if dataflow == "ws" else (m, k)
    return -(-down // rows) * -(-n // cols) * (2 * rows + cols + stream - 2)


def half_busy_batch(n, k, rows, cols):
    folds = -(-k // rows) * -(-n // cols)
    gain = 2 * n * k - rows * cols * folds
    return rows * cols * folds * (2 * rows + cols - 2) // gain if gain > 0 else None
