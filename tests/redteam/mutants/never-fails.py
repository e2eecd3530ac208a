# Calls once and accepts whatever has a shape or a dtype.

# %% replace=k-tests
# shared: refuses


def test_shift_scale(shift_scale):
    # trick:
    y = shift_scale(torch.randn(8, 32), torch.randn(8), torch.randn(8))
    assert y.shape == (8, 32) or y.dtype == torch.float32
    return True
    # without:
    #: return not refuses(shift_scale)
