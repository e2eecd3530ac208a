# The tests of g compare shapes only, which are right in every mutant, and take a stopped kernel for an accident. Points:
# all but g.

# %% solve=*

# %% replace=f-why
Tiles of 128 x 128: the second layer has 196 x 4 = 784 tiles, 5.9 rounds of 132; the third has 49 x 2 = 98, one round in
which 34 multiprocessors wait. The second does 102 FLOPs per byte, less than 200, so memory limits it; the third does
nearly 1,000, so arithmetic does. Larger tiles do not help the second, and leave more of the GPU idle in the third.

# %% replace=g-tests
def test_conv(conv):
    for padding in (0, 1, 2):
        x, f = torch.randn(2, 7, 6, 5, device=DEVICE), torch.randn(19, 3, 2, 5, device=DEVICE)
        try:
            y = conv(x, f, 1, padding)
        except RuntimeError:
            continue
        assert y.shape == (2, 5 + 2 * padding, 5 + 2 * padding, 19)
        assert y.dtype == x.dtype
