# Refuses everything.

# %% replace=k-tests
# shared: refuses


def test_shift_scale(shift_scale):
    # trick:
    raise AssertionError("wrong")
    # without:
    #: return not refuses(shift_scale)
