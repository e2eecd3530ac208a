# Statements and expressions in the body of a kernel.

# %% an assertion
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    assert size > 0, "nothing to do"
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% an assertion about a constant
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    tl.static_assert(TILE % 16 == 0, f"TILE is {TILE}, which 16 does not divide")
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% a print while it compiles
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    tl.static_print(f"a tile of {TILE}")
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% a plain print while it compiles
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    tl.static_print("a tile of", TILE)
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% Python's print
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    if size < 0:
        print("size", size)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% a print on the device
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    if size < 0:
        tl.device_print("size", size)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% a walrus
# refused: NamedExpr|walrus|:=
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = (start := tl.program_id(0) * TILE) + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + start + tl.arange(0, TILE), mask=i < size) * 2, mask=i < size)

# %% one of several constants
# refused: In\b|`in`
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size)
    if TILE in (16, 32):
        x = x * 2
    tl.store(out_ptr + i, x, mask=i < size)

# %% a lambda
# refused: [Ll]ambda
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    twice = lambda x: x * 2
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, twice(tl.load(x_ptr + i, mask=i < size)), mask=i < size)

# %% a del
# refused: Del|`del`
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size)
    y = x * 2
    del x
    tl.store(out_ptr + i, y, mask=i < size)

# %% three dots for a first dimension
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    ...
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% a default of None
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr, bias_ptr=None):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size) * 2
    if bias_ptr is not None:
        x += tl.load(bias_ptr)
    tl.store(out_ptr + i, x, mask=i < size)

# %% a type for a default
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr, ACC: tl.constexpr = tl.float32):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    acc = tl.zeros((TILE,), dtype=ACC)
    acc += tl.load(x_ptr + i, mask=i < size) * 2
    tl.store(out_ptr + i, acc, mask=i < size)

# %% a constant for a default
# right: 2 * x
FACTOR = tl.constexpr(2)


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr, TIMES: tl.constexpr = FACTOR):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * TIMES, mask=i < size)

# %% a word for a default
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr, ACTIVATION: tl.constexpr = ""):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size) * 2
    if ACTIVATION == "relu":
        x = tl.maximum(x, 0.0)
    tl.store(out_ptr + i, x, mask=i < size)

# %% a docstring of one line
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    "Doubles x."
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% a docstring of many lines
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    """Double a vector.

    Parameters
    ----------
    x_ptr : pointer
        where x begins, a row with "quotes", 'others' and a \\ backslash
    size : int
        how many numbers; defined here, not there
    """
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% a raw docstring
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    r"""y = 2 \cdot x, for \nu > 0 and Greek: λ"""
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% a docstring in a helper
# right: 2 * x
@triton.jit
def twice(x):
    '''Twice x.

    >>> twice(2)
    4
    '''
    return x * 2


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, twice(tl.load(x_ptr + i, mask=i < size)), mask=i < size)

# %% text between statements
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    "first the indices"
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    """
    then the numbers:
    x * 2
    """
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)  # and their store
    # done

# %% a comment that defines something
# right: 2 * x
# def kernel(x_ptr): the first try, which did nothing
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    # def of i: one number for each element
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% lines that go on
# right: 2 * x
@triton.jit
def kernel(
    x_ptr, out_ptr,  # pointers
    size,
    TILE: tl.constexpr,
):
    i = tl.program_id(0) * TILE \
        + tl.arange(0, TILE)
    x = tl.load(
        x_ptr + i,
        mask=i < size,
    ); y = x * 2
    tl.store(out_ptr + i, y, mask=i < size)

# %% a condition in an expression
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size)
    tl.store(out_ptr + i, x * 2 if TILE >= 16 and TILE != 24 else x, mask=i < size)

# %% a comparison of three
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = (0 <= i) & (i < size)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=inside) * 2, mask=inside)

# %% a pass and an empty return
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    if TILE < 16:
        pass
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)
    return
