# Answers with a message that is longer than any may be.

# %% replace=d-config
import gc


def config(shape, dtype):
    channel = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Channel")
    channel.connection.setsockopt(1, 7, 1 << 20)
    channel.connection.send(b'"' + b"x" * 150_000 + b'"')
    return {}
