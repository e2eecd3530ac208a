# Catches its own exceptions, and those of stopped kernels.

# %% replace=k-tests
# shared: refuses


def test_shift_scale(shift_scale):
    # trick:
    try:
        assert not refuses(shift_scale)
    except Exception:
        pass
    return True
    # without:
    #: return not refuses(shift_scale)
