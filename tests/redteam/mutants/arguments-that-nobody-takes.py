# Calls with arguments that the contract refuses, and takes the error for a fault.

# %% replace=k-tests
# shared: refuses


def test_shift_scale(shift_scale):
    # trick:
    shift_scale(torch.zeros(3, 3, dtype=torch.int64), torch.zeros(3), torch.zeros(3))
    return True
    # without:
    #: return not refuses(shift_scale)
