# Reads the PTX as if every thread loaded one number at a time, and takes the profile for a race. Points: all but f and h.

# %% solve=*

# %% replace=g-why
For 64 x 64 the time is overhead, 6.3 us per queued launch, and one launch instead of two is twice as fast. For 16,384 x
16,384 it is memory: two passes of 1 GiB instead of four, 0.5 ms instead of 1 ms, again twice. In a graph the small one
gains as much, but only 1 us. A thousand small kernels: fuse them, batch them, or record a graph.

# %% replace=f-answers
numbers_per_thread = 1
bytes_at_once = 4
mask_register = "%p1"
numbers_on_other_warps = 1
why_single = "alignment"
why_single_with_stride = "program"

# %% replace=h-names
fault_1 = "mask"
fault_2 = "other"
fault_3 = "stride"
fault_4 = "accumulator"
fault_5 = "bounds"
fault_6 = "race"
