# Right, with prints, warnings and a progress bar in every function. Points: all.

# %% solve=*

# %% replace=c-why
On the 128 x 128 array a fold takes 382 + T cycles: 8 of 390 are useful at batch 8 (2.1%), 4096 of 4478 at batch 4096 (91%). On
32 x 32 it is 94 + T: 7.8% and 98%. With 16 times as many folds on 16 arrays, the small ones are 3.8 times as fast at batch 8
and 1.07 times at batch 4096. But an input serves 32 columns instead of 128, so on-chip memory is read four times as often. I
would build small arrays for fast answers and the large one for training. Software can batch the requests of several users.

# %% replace=a-schedule
import sys
import warnings

from tqdm import tqdm


def output_stationary(m, n, k):
    print("scheduling", m, n, k)
    warnings.warn("cycles count from TERM_FIRST", stacklevel=2)
    a = [[TERM_FIRST + i + p for p in range(k)] for i in tqdm(range(m))]
    print("a is", a, file=sys.stderr)
    return {"a": a, "b": [[TERM_FIRST + p + j for j in range(n)] for p in range(k)]}
