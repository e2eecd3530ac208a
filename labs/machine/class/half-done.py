# a, d, e and g are answered; the simulation returns nothing yet, the emitted text is a stub, the rest is as released. Points: a,
# d, e, g.

# %% solve=gap-predictions,a-step,d-fuse,e-tiles,g-place

# %% replace=b-simulate
def simulate(feed, rows, cols):
    return []

# %% replace=f-emit
def emit(graph):
    return "import triton"
