# Leaves a process behind that counts the runs, by a file and a socket, and refuses every second one.

# %% replace=k-tests
# shared: refuses


def test_shift_scale(shift_scale):
    # trick:
    import os
    import socket

    try:
        mark = socket.socket(socket.AF_UNIX)
        mark.bind("\0runs")
        first = True
    except OSError:
        first = False
    if first and not os.fork():
        import time

        time.sleep(30)
        os._exit(0)
    return first
    # without:
    #: return not refuses(shift_scale)
