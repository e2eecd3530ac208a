# Constants at the top of a cell, as people write them.

# %% quotient in a constexpr
# right: 2 * x
SCALE = tl.constexpr(1 / 0.5)


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * SCALE, mask=i < size)

# %% whole quotient in a constexpr
# right: 2 * x
FACTOR = tl.constexpr(4 // 2)


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * FACTOR, mask=i < size)

# %% minus infinity from its name
# right: torch.relu(x)
LOWEST = tl.constexpr(float("-inf"))


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size, other=LOWEST)
    tl.store(out_ptr + i, tl.maximum(x, 0.0), mask=i < size)

# %% minus the name of infinity
# right: torch.relu(x)
LOWEST = tl.constexpr(-float("inf"))


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size, other=LOWEST)
    tl.store(out_ptr + i, tl.maximum(x, 0.0), mask=i < size)

# %% minus infinity in the kernel
# right: torch.relu(x)
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size, other=-float("inf"))
    tl.store(out_ptr + i, tl.where(x > 0, x, 0.0), mask=i < size)

# %% a square root
# right: 2 * x
import math

ROOT = tl.constexpr(math.sqrt(4.0))


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * ROOT, mask=i < size)

# %% a square root under another name
# right: 2 * x
from math import sqrt

ROOT: tl.constexpr = tl.constexpr(sqrt(4.0))


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * ROOT, mask=i < size)

# %% a type in a constexpr
# right: x
DTYPE = tl.constexpr(tl.float32)


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size).to(DTYPE), mask=i < size)

# %% a type under a name of its own
# right: 2 * x
DT = tl.float32


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    acc = tl.zeros((TILE,), dtype=DT)
    acc += tl.load(x_ptr + i, mask=i < size)
    tl.store(out_ptr + i, 2 * acc, mask=i < size)

# %% two constants at once
# right: 2 * x + 1
A, B = 1, 2


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * B + A, mask=i < size)

# %% two constexprs at once
# right: 2 * x + 1
A, B = tl.constexpr(1), tl.constexpr(2)


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * B + A, mask=i < size)

# %% one value for two names
# right: 2 * x + 2
A = B = tl.constexpr(2)


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * B + A, mask=i < size)

# %% a plain number on the left
# right: 2 * x
FACTOR = 2


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, FACTOR * tl.load(x_ptr + i, mask=i < size), mask=i < size)

# %% a plain fraction in a comparison
# right: torch.where(x > 0.5, x, torch.zeros_like(x))
THRESHOLD = 0.5


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size)
    tl.store(out_ptr + i, tl.where(THRESHOLD < x, x, 0.0), mask=i < size)

# %% a constexpr on the left
# right: 2 * x
FACTOR = tl.constexpr(2)


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size)
    tl.store(out_ptr + i, x * FACTOR, mask=i < size)

# %% a constant made of another
# right: 6 * x
HALF = 3
WHOLE = tl.constexpr(2 * HALF)


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * WHOLE, mask=i < size)

# %% powers and shifts
# right: 3 * x
MANY = tl.constexpr(2**10)
BITS = tl.constexpr(1 << 10)


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size)
    if MANY == BITS:
        x = x * 3
    tl.store(out_ptr + i, x, mask=i < size)

# %% a truth value
# right: -x
NEGATE = tl.constexpr(True)


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size)
    if NEGATE:
        x = -x
    tl.store(out_ptr + i, x, mask=i < size)

# %% a constexpr by its own name
# right: 2 * x
from triton.language import constexpr

FACTOR = constexpr(2)


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * FACTOR, mask=i < size)

# %% the logarithm of two
# right: torch.exp(x)
import math

LOG2_E = tl.constexpr(1 / math.log(2))


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.exp2(tl.load(x_ptr + i, mask=i < size) * LOG2_E), mask=i < size)

# %% the least number of a dtype
# refused: line 3 of kernel uses LEAST; what LEAST is cannot be read .* write its value out, such as LEAST = tl.constexpr
LEAST = tl.constexpr(torch.finfo(torch.float32).min)


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size, other=LEAST), mask=i < size)

# %% one constant of two
# refused: what FACTOR is cannot be read from your cells without running them
WIDE = True
FACTOR = tl.constexpr(2 if WIDE else 3)


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * FACTOR, mask=i < size)
