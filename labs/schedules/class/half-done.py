# a, c and d are answered; b has its loading and nothing else, e is always weight-stationary with tiles of 16; the rest is as
# released. Points: a, c, d.

# %% solve=gap-predictions,a-schedule,c-cycles,d-choice

# %% replace=b-schedule
def weight_stationary(m, n, k):
    return {"b": [[k - 1 - p for j in range(n)] for p in range(k)], "a": [], "c": []}

# %% replace=e-plan
def plan(layers, chip):
    return [("ws", tuple(min(16, side) for side in layer)) for layer in layers]
