# Two of the four causes are wrong. Points: all but gap.

# %% solve=*

# %% replace=g-why
Weights of 247 MB and 19 MB of cache take 67 us at 4 TB/s; the cache is 7% of that. The other 113 us are 62 boundaries of
1.8 us each. All five kernels of a layer have bytes for 1.2 us or less, so each is worth less than a boundary. I would make
fewer boundaries first, with a persistent kernel whose barrier is shorter and that fetches weights while it waits. A memory
of twice the speed saves 33 us, and the boundaries stay.

# %% replace=gap-causes
cause_1 = "boundaries"
cause_2 = "padding"
cause_3 = "kept"
cause_4 = "kept"
