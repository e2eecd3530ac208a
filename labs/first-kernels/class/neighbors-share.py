# The sum masks with N instead of the end of the program's own share, so numbers count twice. Points: all but d.

# %% solve=*

# %% replace=g-why
For 64 x 64 the time is overhead, 6.3 us per queued launch, and one launch instead of two is twice as fast. For 16,384 x
16,384 it is memory: two passes of 1 GiB instead of four, 0.5 ms instead of 1 ms, again twice. In a graph the small one
gains as much, but only 1 us. A thousand small kernels: fuse them, batch them, or record a graph.

# %% replace=d-kernel
@triton.jit
def sum_kernel(x_ptr, sums_ptr, N, share, BLOCK: tl.constexpr):
    first = tl.program_id(0) * share
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(first, first + share, BLOCK):
        index = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + index, mask=index < N, other=0.0).to(tl.float32)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(total, 0))
