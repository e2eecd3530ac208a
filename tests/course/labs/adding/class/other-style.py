# Right, with other names, a helper and imports in added cells, a magic, an exploratory cell that fails and one that hangs.

# %% solve=a-predict
# %% add after=setup
import math as m
from torch import empty_like as like
%matplotlib inline
# %% add after=a-test
def programs(n, block):
    return m.ceil(n / block)
# %% add after=b-kernel
broken = programs("no", 3)
# %% add after=b-kernel
import time
while True:
    time.sleep(1)
# %% replace=b-kernel
%%time
BLOCK_SIZE = 32
@triton.jit
def plus(left, right, result, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(result + i, tl.load(left + i, mask=i < n) + tl.load(right + i, mask=i < n), mask=i < n)

def add(x, y):
    z = like(x)
    plus[(programs(x.numel(), BLOCK_SIZE),)](x, y, z, x.numel(), B=BLOCK_SIZE)
    return z
# %% solve=c-sum
