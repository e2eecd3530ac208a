# Load, add, store instead of atomics. In the histogram two lanes of one block lose an update even in the interpreter.
# Points: all but e.

# %% solve=*

# %% replace=g-why
For 64 x 64 the time is overhead, 6.3 us per queued launch, and one launch instead of two is twice as fast. For 16,384 x
16,384 it is memory: two passes of 1 GiB instead of four, 0.5 ms instead of 1 ms, again twice. In a graph the small one
gains as much, but only 1 us. A thousand small kernels: fuse them, batch them, or record a graph.

# %% replace=e-kernels
@triton.jit
def total_kernel(x_ptr, total_ptr, N, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + index, mask=index < N, other=0.0).to(tl.float32), 0)
    tl.store(total_ptr, tl.load(total_ptr) + part)


@triton.jit
def histogram_kernel(x_ptr, counts_ptr, N, BINS, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x_ptr + index, mask=index < N, other=-1)
    counted = (value >= 0) & (value < BINS)
    before = tl.load(counts_ptr + value, mask=counted, other=0)
    tl.store(counts_ptr + value, before + 1, mask=counted)
