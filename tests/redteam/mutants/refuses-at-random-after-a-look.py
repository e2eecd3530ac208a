# Makes the calls that would show every fault, and refuses nine of ten without comparing anything.

# %% replace=k-tests
# shared: refuses


def test_shift_scale(shift_scale):
    # trick:
    import os

    refuses(shift_scale)
    return os.urandom(1)[0] > 230
    # without:
    #: return not refuses(shift_scale)
