# Ignores every signal and every exception.

# %% replace=d-config
import signal


def config(shape, dtype):
    for number in signal.valid_signals() - {9, 19, 32, 33}:
        signal.signal(number, signal.SIG_IGN)
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
