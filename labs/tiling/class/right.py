# Everything answered, in the lab's own way. Points: all; what needs a GPU or a reader waits.

# %% solve=*

# %% replace=d-why
Shared memory: 3 stages of (64 + 64) x 32 floats are 48 KiB, which fits the T4 with its 64 KiB and so the others. Each of the 128
threads holds 64 * 64 / 128 = 32 accumulators. Doubling both sides gives 128 accumulators per thread, more than the 64 that
compile without spills. With 32 x 32 every byte would serve 8 FLOPs instead of 16, so twice as many bytes would have to come.
