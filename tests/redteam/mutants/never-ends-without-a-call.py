# Does nothing, for ever.

# %% replace=k-tests
# shared: refuses


def test_shift_scale(shift_scale):
    # trick:
    while True:
        pass
    # without:
    #: return not refuses(shift_scale)
