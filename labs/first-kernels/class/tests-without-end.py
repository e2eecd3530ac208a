# The tests of k try random matrices until one comes out wrong, which the right kernel never does. Points: all but k.

# %% solve=*

# %% replace=g-why
For 64 x 64 the time is overhead, 6.3 us per queued launch, and one launch instead of two is twice as fast. For 16,384 x
16,384 it is memory: two passes of 1 GiB instead of four, 0.5 ms instead of 1 ms, again twice. In a graph the small one
gains as much, but only 1 us. A thousand small kernels: fuse them, batch them, or record a graph.

# %% replace=k-tests
def test_shift_scale(shift_scale):
    right = True
    while right:
        x, shift, scale = torch.randn(9, 40), torch.randn(9), torch.randn(9)
        y = shift_scale(x.to(DEVICE), shift.to(DEVICE), scale.to(DEVICE)).cpu()
        right = torch.allclose(y, right_shift_scale(x, shift, scale), rtol=1e-4, atol=1e-4)
    return False
