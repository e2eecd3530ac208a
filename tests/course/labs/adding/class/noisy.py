# Right, and writes much to both streams.

# %% solve=*
# %% add after=setup
import sys
def talk():
    print("x" * 5_000_000)
    sys.stderr.write("progress 100%\r" * 100_000)
# %% replace=c-sum
def add_three(x, y, z):
    talk()
    return add(add(x, y), z)
