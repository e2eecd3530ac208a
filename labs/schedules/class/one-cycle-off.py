# In a everything starts in cycle 1 instead of 0, so it takes a cycle too many; in b the inputs enter one cycle before the last
# weights are usable. Points: all but a and b.

# %% solve=*

# %% replace=c-why
On the 128 x 128 array a fold takes 382 + T cycles: 8 of 390 are useful at batch 8 (2.1%), 4096 of 4478 at batch 4096 (91%). On
32 x 32 it is 94 + T: 7.8% and 98%. With 16 times as many folds on 16 arrays, the small ones are 3.8 times as fast at batch 8
and 1.07 times at batch 4096. But an input serves 32 columns instead of 128, so on-chip memory is read four times as often. I
would build small arrays for fast answers and the large one for training. Software can batch the requests of several users.

# %% replace=a-schedule
def output_stationary(m, n, k):
    return {
        "a": [[TERM_FIRST + 1 + i + p for p in range(k)] for i in range(m)],
        "b": [[TERM_FIRST + 1 + p + j for j in range(n)] for p in range(k)],
    }

# %% replace=b-schedule
def weight_stationary(m, n, k):
    return {
        "b": [[TERM_FIRST + k - 1 - p for j in range(n)] for p in range(k)],
        "a": [[TERM_FIRST + k - 1 + i + p for p in range(k)] for i in range(m)],
        "c": [[TERM_FIRST + k - 1 + i + (k - 1) + j for j in range(n)] for i in range(m)],
    }
