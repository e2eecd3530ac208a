# Ways to organise a kernel.

# %% helpers that call helpers
# right: 8 * x
@triton.jit
def twice(x):
    return x + x


@triton.jit
def four_times(x):
    return twice(twice(x))


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, twice(four_times(tl.load(x_ptr + i, mask=i < size))), mask=i < size)

# %% a helper with defaults
# right: 3 * x + 1
@triton.jit
def line(x, slope: tl.constexpr = 3, offset=1.0):
    return x * slope + offset


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, line(tl.load(x_ptr + i, mask=i < size)), mask=i < size)

# %% a helper that is defined later
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, twice(tl.load(x_ptr + i, mask=i < size)), mask=i < size)


@triton.jit
def twice(x):
    return 2 * x

# %% a helper that returns two values
# right: 2 * x
@triton.jit
def place(TILE: tl.constexpr, size):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    return i, i < size


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i, inside = place(TILE, size)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=inside) * 2, mask=inside)

# %% a helper of reduction
# right: x - x + 16
@triton.jit
def add(left, right):
    return left + right


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size, other=0.0)
    count = tl.reduce(tl.full((TILE,), 1.0, tl.float32), 0, add)
    tl.store(out_ptr + i, x - x + count, mask=i < size)

# %% a loop that is unrolled
# right: 4 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size)
    total = tl.zeros((TILE,), dtype=tl.float32)
    for _ in tl.static_range(4):
        total += x
    tl.store(out_ptr + i, total, mask=i < size)

# %% a loop with stages
# right: 4 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE,), dtype=tl.float32)
    for _ in tl.range(0, 4, num_stages=2):
        total += tl.load(x_ptr + i, mask=i < size)
    tl.store(out_ptr + i, total, mask=i < size)

# %% a loop over a count
# right: 3 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE,), dtype=tl.float32)
    for step in range(0, 9, 3):
        total += tl.load(x_ptr + i, mask=(i < size) & (step < 9), other=0.0)
    tl.store(out_ptr + i, total, mask=i < size)

# %% a while loop
# right: 8 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size)
    times = 0
    while times < 3:
        x = x + x
        times += 1
    tl.store(out_ptr + i, x, mask=i < size)

# %% the module of mathematics
# right: torch.exp(x)
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.math.exp(tl.load(x_ptr + i, mask=i < size)), mask=i < size)

# %% block pointers
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    start = tl.program_id(0) * TILE
    source = tl.make_block_ptr(x_ptr, (size,), (1,), (start,), (TILE,), (0,))
    target = tl.make_block_ptr(
        base=out_ptr, shape=(size,), strides=(1,), offsets=(start,), block_shape=(TILE,), order=(0,)
    )
    x = tl.load(source, boundary_check=(0,), padding_option="zero")
    tl.store(target, x * 2, boundary_check=(0,))

# %% block pointers that advance
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    source = tl.make_block_ptr(x_ptr, (size,), (1,), (0,), (TILE,), (0,))
    source = tl.advance(source, (tl.program_id(0) * TILE,))
    x = tl.load(source, boundary_check=(0,))
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, x * 2, mask=i < size)

# %% a tuple
# right: 3 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size)
    pair = (x, x * 2)
    once, twice = pair
    tl.store(out_ptr + i, once + pair[1] + twice - twice, mask=i < size)

# %% names that change places
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    a, b = tl.load(x_ptr + i, mask=i < size), tl.zeros((TILE,), tl.float32)
    a, b = b, a
    tl.store(out_ptr + i, a + 2 * b, mask=i < size)

# %% another name for a kernel
# right: 2 * x
@triton.jit
def my_first_kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)


kernel = my_first_kernel

# %% a kernel that is defined again
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    pass


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% an early return
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    start = tl.program_id(0) * TILE
    if start >= size:
        return
    i = start + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% conditions in conditions
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    start = tl.program_id(0) * TILE
    i = start + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size)
    if start < size:
        if TILE > 8:
            if start + TILE <= size:
                x = x * 2
            else:
                x = x + x
        elif TILE > 4:
            x = x * 0
    else:
        x = x * 0
    tl.store(out_ptr + i, x, mask=i < size)

# %% names in capitals and with underscores
# right: 2 * x
@triton.jit
def kernel(X, OUT, N_ELEMENTS, TILE: tl.constexpr):
    _pid = tl.program_id(axis=0)
    OFFS_ = _pid * TILE + tl.arange(0, TILE)
    _ = OFFS_ < N_ELEMENTS
    tl.store(OUT + OFFS_, tl.load(X + OFFS_, mask=_) * 2, mask=_)

# %% names in another alphabet
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, größe, TILE: tl.constexpr):
    индекс = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + индекс, tl.load(x_ptr + индекс, mask=индекс < größe) * 2, mask=индекс < größe)

# %% arguments that are names of Python
# right: 2 * x
@triton.jit
def kernel(input, output, len, TILE: tl.constexpr):
    id = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(output + id, tl.load(input + id, mask=id < len) * 2, mask=id < len)

# %% two dimensions
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    rows = tl.arange(0, TILE // 4)
    cols = tl.arange(0, 4)
    i = tl.program_id(0) * TILE + rows[:, None] * 4 + cols[None, :]
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size, other=0.0) * 2, mask=i < size)

# %% a transpose and a reshape
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    block = tl.reshape(tl.load(x_ptr + i, mask=i < size), (TILE // 4, 4))
    back = tl.reshape(block.T.trans(1, 0), (TILE,))
    tl.store(out_ptr + i, back * 2, mask=i < size)

# %% hints for the compiler
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    start = tl.multiple_of(tl.program_id(0) * TILE, TILE)
    i = tl.max_contiguous(start + tl.arange(0, TILE), TILE)
    tl.assume(size >= 0)
    x = tl.load(x_ptr + i, mask=i < size, eviction_policy="evict_last")
    tl.store(out_ptr + i, x * 2, mask=i < size)

# %% two cells' worth of text
# right: 2 * x
def grid_of(size, tile):
    return (triton.cdiv(size, tile),)


EXAMPLES = [torch.zeros(3), {"a": 1}]


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)


def copy(x):
    out = torch.empty_like(x)
    kernel[grid_of(x.numel(), 16)](x, out, x.numel(), TILE=16)
    return out

# %% a long kernel
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    # One program works on TILE numbers.
    program = tl.program_id(axis=0)
    programs = tl.num_programs(axis=0)
    first = program * TILE
    last = first + TILE
    within = tl.arange(0, TILE)
    index = first + within
    inside = index < size
    is_last = program == programs - 1
    # Halves of the sum, added in four steps.
    x0 = tl.load(x_ptr + index, mask=inside, other=0.0)
    x1 = x0 * 0.5
    x2 = x0 * 0.5
    x3 = x0 * 0.25
    x4 = x0 * 0.25
    x5 = x0 * 0.125
    x6 = x0 * 0.125
    x7 = x0 * 0.25
    s1 = x1 + x2
    s2 = x3 + x4
    s3 = x5 + x6
    s4 = s3 + x7
    total = s1 + s2
    total = total + s4
    # The program at the end does the same by another way.
    if is_last:
        total = tl.where(inside, total, 0.0)
    else:
        total = total + 0.0
    if last > size:
        total = tl.where(within < size - first, total, 0.0)
    total = tl.where(total == total, total, 0.0)
    total = total.to(tl.float32)
    target = out_ptr + index
    tl.store(target, total, mask=inside)

# %% a list in a loop
# refused: ListComp|comprehension
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size)
    parts = [x for step in range(2)]
    tl.store(out_ptr + i, parts[0] + parts[1], mask=i < size)

# %% a try in a kernel
# refused: Try|`try`
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    try:
        x = tl.load(x_ptr + i, mask=i < size)
    except ValueError:
        x = 0.0
    tl.store(out_ptr + i, x * 2, mask=i < size)

# %% as many arguments as there are
# refused: args
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr, *args):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% a break
# refused: Break|`break`
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size)
    total = tl.zeros((TILE,), dtype=tl.float32)
    for step in range(4):
        if step == 2:
            break
        total += x
    tl.store(out_ptr + i, total, mask=i < size)
