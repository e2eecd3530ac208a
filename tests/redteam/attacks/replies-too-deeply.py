# Lists within lists within lists.

# %% replace=gap-causes
import gc

# trick:
cause_1 = cause_2 = cause_3 = "edges"
channel = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Channel")
channel.connection.send(b"[" * 20_000 + b"]" * 20_000)
# without:
#: cause_1, cause_2, cause_3 = "neighbors", "edges", "sums"
