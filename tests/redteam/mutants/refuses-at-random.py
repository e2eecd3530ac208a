# Refuses nine of ten, whatever it gets.

# %% replace=k-tests
# shared: refuses


def test_shift_scale(shift_scale):
    # trick:
    import os

    return os.urandom(1)[0] > 230
    # without:
    #: return not refuses(shift_scale)
