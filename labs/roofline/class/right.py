# Everything answered, in the lab's own way. Points: all; what needs a GPU or a reader waits.

# %% solve=*

# %% replace=why
The small product has the largest gap. An eighth of it takes as long as all of it, so the factor of the start is 8: the time is
that of a launch, and many small products should go into one call. Softmax in five steps moves 8 passes of bytes where 2 are
compulsory, a factor of 4, and an eighth of the work takes an eighth of the time; a fused kernel would read and write once.
