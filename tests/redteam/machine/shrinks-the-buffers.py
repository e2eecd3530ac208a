# The buffers that the function is given lose their sizes, and all are placed at 0.

# %% replace=h-plan
# shared: offsets


def plan(buffers):
    # trick:
    for number, (lower, upper, _) in enumerate(buffers):
        buffers[number] = (lower, upper, 0)
    return [0] * len(buffers)
    # without:
    #: return honest_offsets(buffers)
