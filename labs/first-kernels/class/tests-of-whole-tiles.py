# The tests of k try one matrix of whole tiles, whose rows follow each other. They find four of twelve mutants: columns
# from the seventeenth on, negative scales, negative sums, every row but the first. Points: all but two thirds of k.

# %% solve=*

# %% replace=g-why
For 64 x 64 the time is overhead, 6.3 us per queued launch, and one launch instead of two is twice as fast. For 16,384 x
16,384 it is memory: two passes of 1 GiB instead of four, 0.5 ms instead of 1 ms, again twice. In a graph the small one
gains as much, but only 1 us. A thousand small kernels: fuse them, batch them, or record a graph.

# %% replace=k-tests
def test_shift_scale(shift_scale):
    draw = grading.Draws("mine", DEVICE)
    x = draw.matrix(8, 32)
    shift, scale = draw.matrix(2, 8)
    y = shift_scale(x, shift, scale)
    return torch.allclose(y, right_shift_scale(x, shift, scale), rtol=1e-5, atol=1e-5)
