# The histogram has no mask at its atomic: lanes past the end count as zeros, and values outside the bins change memory
# outside the counts. Points: all but e.

# %% solve=*

# %% replace=g-why
For 64 x 64 the time is overhead, 6.3 us per queued launch, and one launch instead of two is twice as fast. For 16,384 x
16,384 it is memory: two passes of 1 GiB instead of four, 0.5 ms instead of 1 ms, again twice. In a graph the small one
gains as much, but only 1 us. A thousand small kernels: fuse them, batch them, or record a graph.

# %% replace=e-kernels
@triton.jit
def total_kernel(x_ptr, total_ptr, N, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + index, mask=index < N, other=0.0).to(tl.float32)
    tl.atomic_add(total_ptr, tl.sum(x, 0))


@triton.jit
def histogram_kernel(x_ptr, counts_ptr, N, BINS, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x_ptr + index, mask=index < N, other=0)
    tl.atomic_add(counts_ptr + value, 1)
