# An exception that fails when it is asked what it says.

# %% replace=b-schedule
class Mute(BaseException):
    def __str__(self):
        raise self

    __repr__ = __str__


def schedule(m, n, k, memory_bytes):
    raise Mute
