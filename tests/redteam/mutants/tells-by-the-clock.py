# Refuses by the last digits of the time that a call took.

# %% replace=k-tests
# shared: refuses


def test_shift_scale(shift_scale):
    # trick:
    import time

    started = time.perf_counter_ns()
    refuses(shift_scale)
    return (time.perf_counter_ns() - started) % 100 < 10
    # without:
    #: return not refuses(shift_scale)
