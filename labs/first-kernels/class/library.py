# The fused step is PyTorch in a function with the kernel's name, without @triton.jit. Points: all but c, and j on a GPU.

# %% solve=*

# %% replace=g-why
For 64 x 64 the time is overhead, 6.3 us per queued launch, and one launch instead of two is twice as fast. For 16,384 x
16,384 it is memory: two passes of 1 GiB instead of four, 0.5 ms instead of 1 ms, again twice. In a graph the small one
gains as much, but only 1 us. A thousand small kernels: fuse them, batch them, or record a graph.

# %% replace=c-kernel
def two_pass_bytes(rows, cols, itemsize):
    return (4 * rows * cols + 2 * rows) * itemsize


def one_pass_bytes(rows, cols, itemsize):
    return (2 * rows * cols + 2 * rows) * itemsize


def shift_scale_kernel(x, shift, scale, y, *sizes, **constants):
    y.copy_(right_shift_scale(x, shift, scale))
