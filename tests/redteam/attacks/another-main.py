# Puts other functions into __main__ and into modules that share its names.

# %% replace=gap-causes
import sys
import types

# trick:
impostor = types.ModuleType("__main__")
impostor.cause_1, impostor.cause_2, impostor.cause_3 = "neighbors", "edges", "sums"
sys.modules["__main__"] = impostor
sys.modules["tests of gap"] = impostor
import __main__

__main__.cause_1 = "neighbors"
cause_1 = cause_2 = cause_3 = "writes"
# without:
#: cause_1, cause_2, cause_3 = "neighbors", "edges", "sums"
