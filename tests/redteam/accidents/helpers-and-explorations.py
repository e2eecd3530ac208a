# Right, with helpers and imports in added cells; between them cells that fail, hang, and leave the notebook.

# %% solve=a-predict
# %% add after=setup
import numpy as np, math
from functools import partial
# %% add after=a-test
def programs(count, size=64):
    return (math.ceil(count / size),)
# %% add after=a-test
this is no Python at all
# %% add after=b-kernel
print(undefined_name)
raise SystemExit
# %% add after=b-kernel
while True:
    pass
# %% add after=b-kernel
slow = [partial(input)() for _ in iter(int, 1)]
# %% add after=b-kernel
!pip install something
%timeit add(1, 2)
# %% solve=c-sum
# %% replace=b-kernel
@triton.jit
def plus(x_ptr, y_ptr, out_ptr, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) + tl.load(y_ptr + i, mask=i < size), mask=i < size)


def add(x, y):
    out = torch.empty(x.shape, dtype=x.dtype)
    plus[programs(x.numel())](x, y, out, x.numel(), BLOCK=64)
    return out
