# Decorators, and functions that are defined elsewhere than at the top of a cell.

# %% jit with brackets
# right: 2 * x
@triton.jit()
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% jit by its own name
# right: 2 * x
from triton import jit


@jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% no specializing by name
# right: 2 * x
@triton.jit(do_not_specialize=["size"])
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% no specializing by number
# right: 2 * x
@triton.jit(do_not_specialize=[2], do_not_specialize_on_alignment=["size"])
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% with checks switched on
# right: 2 * x
@triton.jit(debug=True)
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% a helper that is not inlined
# right: 2 * x
@triton.jit(noinline=True)
def first_of(program, length):
    return program * length


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = first_of(tl.program_id(0), TILE) + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% jit as a function
# right: 2 * x
def plain(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)


kernel = triton.jit(plain)

# %% defined under a condition
# right: 2 * x
if torch.__version__:

    @triton.jit
    def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
        i = tl.program_id(0) * TILE + tl.arange(0, TILE)
        tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% defined in an attempt
# right: 2 * x
try:

    @triton.jit
    def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
        i = tl.program_id(0) * TILE + tl.arange(0, TILE)
        tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

except ImportError:
    pass

# %% a function of constants
# right: 4 * x
@triton.constexpr_function
def square(n):
    return n * n


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * square(2), mask=i < size)

# %% a helper in a class
# right: 2 * x
class Helpers:
    @triton.jit
    def twice(x):
        return x * 2


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, Helpers.twice(tl.load(x_ptr + i, mask=i < size)), mask=i < size)

# %% a helper taken out of a class
# right: 2 * x
class Helpers:
    @staticmethod
    @triton.jit
    def twice(x):
        return x * 2


twice = Helpers.twice


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, twice(tl.load(x_ptr + i, mask=i < size)), mask=i < size)

# %% tuned by Triton
# refused: autotune
@triton.autotune(configs=[triton.Config({}, num_warps=4)], key=["size"])
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% constants by a rule
# refused: heuristics
@triton.heuristics({"EVEN": lambda given: given["size"] % given["TILE"] == 0})
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i) if EVEN else tl.load(x_ptr + i, mask=i < size)
    tl.store(out_ptr + i, x * 2, mask=i < size)

# %% a decorator of one's own
# refused: timed
def timed(function):
    return function


@timed
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% no decorator
# refused: triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)
