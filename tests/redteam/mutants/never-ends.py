# Waits for a function that is wrong.

# %% replace=k-tests
# shared: refuses


def test_shift_scale(shift_scale):
    # trick:
    while not refuses(shift_scale):
        pass
    return False
    # without:
    #: return not refuses(shift_scale)
