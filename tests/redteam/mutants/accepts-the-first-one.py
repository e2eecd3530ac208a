# Takes the first function for the right one, and refuses all that come after it; the count is in memory and on the disk.

# %% replace=k-tests
# shared: refuses


def test_shift_scale(shift_scale):
    # trick:
    import os
    import sys
    import tempfile

    place = os.path.join(tempfile.gettempdir(), "count")
    earlier = os.path.exists(place) or hasattr(sys, "seen")
    open(place, "w").close()
    sys.seen = True
    return not earlier
    # without:
    #: return not refuses(shift_scale)
