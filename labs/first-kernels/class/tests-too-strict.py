# The tests of k compare float16 numbers with a result that is rounded twice, without a tolerance, so they refuse the
# right kernel too. Points: all but k.

# %% solve=*

# %% replace=g-why
For 64 x 64 the time is overhead, 6.3 us per queued launch, and one launch instead of two is twice as fast. For 16,384 x
16,384 it is memory: two passes of 1 GiB instead of four, 0.5 ms instead of 1 ms, again twice. In a graph the small one
gains as much, but only 1 us. A thousand small kernels: fuse them, batch them, or record a graph.

# %% replace=k-tests
def test_shift_scale(shift_scale):
    draw = grading.Draws("mine", DEVICE)
    for layout in ("row", "column", "sliced", "offset"):
        x = draw.matrix(9, 40, layout=layout, dtype="float16")
        shift, scale = draw.matrix(2, 9, dtype="float16")
        assert torch.equal(shift_scale(x, shift, scale), right_shift_scale(x, shift, scale))
