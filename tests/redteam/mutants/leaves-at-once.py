# Ends its process before it can be asked.

# %% replace=k-tests
# shared: refuses


def test_shift_scale(shift_scale):
    # trick:
    import os

    os._exit(0)
    # without:
    #: return not refuses(shift_scale)
