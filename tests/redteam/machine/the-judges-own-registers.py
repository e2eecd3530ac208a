# The package simulates the array in order to judge it; the question is to simulate it.

# %% replace=b-simulate
# shared: registers


def simulate(feed, rows, cols):
    # trick:
    history = pe_array.registers(feed, rows, cols)
    return history.transpose(0, 2, 3, 1).tolist()
    # without:
    #: return honest_registers(feed, rows, cols)
