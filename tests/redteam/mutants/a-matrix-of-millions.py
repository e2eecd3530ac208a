# Asks for so many programs that the kernel runs for hours.

# %% replace=k-tests
# shared: refuses


def test_shift_scale(shift_scale):
    # trick:
    x = torch.zeros(4_000_000, 3)
    return bool((shift_scale(x, x[:, 0].contiguous(), x[:, 1].contiguous()) == 0).all())
    # without:
    #: return not refuses(shift_scale)
