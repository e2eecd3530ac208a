# The package's own functions answer c and e; they are removed when the lab is graded. Points: all but c and e.

# %% solve=*

# %% replace=c-why
On the 128 x 128 array a fold takes 382 + T cycles: 8 of 390 are useful at batch 8 (2.1%), 4096 of 4478 at batch 4096 (91%). On
32 x 32 it is 94 + T: 7.8% and 98%. With 16 times as many folds on 16 arrays, the small ones are 3.8 times as fast at batch 8
and 1.07 times at batch 4096. But an input serves 32 columns instead of 128, so on-chip memory is read four times as often. I
would build small arrays for fast answers and the large one for training. Software can batch the requests of several users.

# %% replace=c-cycles
def product_cycles(m, n, k, rows, cols, dataflow):
    total = 0
    for row in range(0, k if dataflow == "ws" else m, rows):
        for col in range(0, n, cols):
            r, c = min(rows, (k if dataflow == "ws" else m) - row), min(cols, n - col)
            shape = (m, c, r) if dataflow == "ws" else (r, c, k)
            total += systolic.gemm_cycles(*shape, rows=r, cols=c, dataflow=dataflow)
    return total


def half_busy_batch(n, k, rows, cols):
    folds = -(-k // rows) * -(-n // cols)
    waiting = product_cycles(1, n, k, rows, cols, "ws") - folds
    gain = 2 * n * k - rows * cols * folds
    return -(-rows * cols * waiting // gain) if gain > 0 else None

# %% replace=e-plan
def plan(layers, chip):
    from mlsys.dataflow.loop_nest import matmul
    from mlsys.dataflow.search import pruned_search

    steps = []
    for layer in layers:
        found = pruned_search(matmul(*layer), memory=chip["memory"])
        dataflow = {"m": "ws", "k": "os", "n": "is"}[found.order[-1]]
        steps.append((dataflow, tuple(found.tile[loop] for loop in "mnk")))
    return steps
