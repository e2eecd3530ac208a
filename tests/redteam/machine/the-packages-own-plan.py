# The package has a planner; the question is to write one.

# %% replace=h-plan
# shared: offsets


def plan(buffers):
    # trick:
    from mlsys.compiler.memory import plan_memory

    return plan_memory(buffers)
    # without:
    #: return honest_offsets(buffers)
