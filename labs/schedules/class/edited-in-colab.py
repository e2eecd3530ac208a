# A right submission as it comes back from Colab: a test of a weakened, the functions of e rewritten so that moving costs
# nothing, one test cell copied, one deleted, cell ids replaced. Points: all.

# %% solve=*

# %% replace=c-why
On the 128 x 128 array a fold takes 382 + T cycles: 8 of 390 are useful at batch 8 (2.1%), 4096 of 4478 at batch 4096 (91%). On
32 x 32 it is 94 + T: 7.8% and 98%. With 16 times as many folds on 16 arrays, the small ones are 3.8 times as fast at batch 8
and 1.07 times at batch 4096. But an input serves 32 columns instead of 128, so on-chip memory is read four times as often. I
would build small arrays for fast answers and the large one for training. Software can batch the requests of several users.

# %% replace=a-test
array_schedule.assert_output_stationary(output_stationary(1, 1, 2), 1, 1, 2)

# %% replace=d-layers
SIX_LAYERS = [(1, 1, 1)] * 6

# %% copy=c-test

# %% delete=b-test

# %% colab
