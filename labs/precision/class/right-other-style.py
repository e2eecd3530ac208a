# Everything right, written otherwise: pointers that move on, operands turned in registers, a helper with @triton.jit
# in an added cell, other argument names, counts by listing, an exploratory cell that fails. Points: all.

# %% solve=gap-predictions,g-kernel,gap-causes

# %% replace=f-why
At batch 8 the product moves 134 MB of weights for 1.1 GFLOP, so memory is the limit, and int4 brings almost four times
the speed. At 4,096 rows arithmetic is the limit: int4 weights bring nothing, and int8 or fp8 on both sides two times. A
weight of 4 bits has half a byte and m multiply-adds, so the batch of 51 follows from bits, bandwidth and peak. At 1,024
rows the kernel still unpacks every weight, once for each tile of rows.

# %% replace=a-counts
def weight_bytes(n, k, bits, group):
    scales = len(range(0, k, group)) if group else 0
    return n * (k * bits + 16 * scales) // 8


def product_bytes(m, n, k, bits, group):
    return sum((2 * m * k, weight_bytes(n, k, bits, group), 2 * m * n))


def product_flops(m, n, k):
    return m * n * (k + k)


def product_time(m, n, k, bits, group, bandwidth, peak):
    loading, computing = product_bytes(m, n, k, bits, group) / bandwidth, product_flops(m, n, k) / peak
    return loading if loading > computing else computing


def last_batch(bits, bandwidth, peak):
    rows = 0
    while 2 * 8 * (rows + 1) * bandwidth <= bits * peak:
        rows += 1
    return rows

# %% replace=b-packing
def pack(weights):
    digits = ["0123456789abcdef"[weights[one] + 8] for one in [TERM_ORDER]]
    return int("".join(reversed(digits)), 16)


def unpack(word):
    found = {}
    for one in [TERM_ORDER]:
        word, nibble = divmod(word, 16)
        found[one] = nibble - 8
    return [found[one] for one in range(8)]

# %% replace=c-quantize
def quantize(x, most):
    largest = x.abs().max(dim=-1, keepdim=True).values
    scale = torch.where(largest > 0, largest / most, torch.ones_like(largest))
    return torch.round(x / scale).char(), scale.squeeze(-1)


def quantize_rows(x):
    return quantize(x, 127)


def quantize_groups(w, group):
    codes, scale = quantize(w.unflatten(1, (-1, group)), 7)
    return codes.flatten(1), scale


def relative_error(found, exact):
    difference, whole = found.double() - exact.double(), exact.double()
    return float((difference * difference).sum() / (whole * whole).sum()) ** 0.5

# %% add after=b-test
# What is the largest tile?
print(nothing_of_that_name)

# %% add after=b-test
@triton.jit
def block(axis, SIZE: tl.constexpr):
    """The indices of this program along one axis."""
    return tl.program_id(axis) * SIZE + tl.arange(0, SIZE)

# %% replace=d-kernel
@triton.jit
def int8_kernel(
    left, right, left_scale, right_scale, result, rows, cols, depth, l0, l1, r0, r1, s0, s1,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    """Both operands as blocks of rows; the right one is turned in registers."""
    row, col, step = block(0, TILE_M), block(1, TILE_N), tl.arange(0, TILE_K)
    total = tl.full((TILE_M, TILE_N), 0, tl.int32)
    while depth > 0:
        there = (step < depth)[None, :]
        one = tl.load(left + row[:, None] * l0 + step[None, :] * l1, (row < rows)[:, None] & there, 0)
        two = tl.load(right + col[:, None] * r0 + step[None, :] * r1, (col < cols)[:, None] & there, 0)
        total += tl.dot(one, tl.trans(two), out_dtype=tl.int32)
        left += TILE_K * l1
        right += TILE_K * r1
        depth -= TILE_K
    scale = tl.load(left_scale + row, row < rows, 0.0)[:, None] * tl.load(right_scale + col, col < cols, 0.0)[None, :]
    inside = (row < rows)[:, None] & (col < cols)[None, :]
    tl.store(result + row[:, None] * s0 + col[None, :] * s1, (total * scale).to(result.dtype.element_ty), inside)

# %% replace=e-kernel
@triton.jit
def int4_kernel(
    numbers, pairs, factors, result, rows, cols, depth, n0, n1,
    GROUP: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr,
):  # fmt: skip
    """Pointers that move on; weights as rows, turned in registers."""
    row, col, lane = block(0, TILE_M), block(1, TILE_N), tl.arange(0, GROUP // 2)
    there, wanted = (row < rows)[:, None], (col < cols)[:, None]
    low_half = numbers + row[:, None] * n0 + (lane + TERM_LOW_AT)[None, :] * n1
    high_half = numbers + row[:, None] * n0 + (lane + TERM_HIGH_AT)[None, :] * n1
    pairs += col[:, None] * (depth // 2) + lane[None, :]
    factors += col * (depth // GROUP)
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for _ in range(0, depth, GROUP):
        both = tl.load(pairs, wanted, 0)
        sums = tl.dot(tl.load(low_half, there, 0.0), ((both % 16).to(tl.float16) - 8).T)
        sums += tl.dot(tl.load(high_half, there, 0.0), ((both // 16).to(tl.float16) - 8).T)
        total += sums * tl.load(factors, col < cols, 0.0)[None, :]
        low_half += GROUP * n1
        high_half += GROUP * n1
        pairs += GROUP // 2
        factors += 1
    tl.store(result + row[:, None] * cols + col[None, :], total.to(tl.float16), there & (col < cols)[None, :])

# %% replace=f-config
def config(shape, dtype):
    rows = 64 if shape[0] > 16 else 16
    return dict(TILE_M=rows, TILE_N=64 if rows == 64 else 32, num_warps=4, num_stages=3 if rows == 64 else 4)

# %% replace=h-sparse
def keep_two(group):
    kept = []
    for _ in range(2):
        rest = [place for place in range(4) if place not in kept]
        kept.append(max(rest, key=lambda place: (abs(group[place]), -place)))
    return min(kept), max(kept)


def pack_24(row):
    values, metadata = [], []
    for start in range(0, len(row), 8):
        byte = 0
        for half in (0, 4):
            first, second = keep_two(row[start + half : start + half + 4])
            values.extend((row[start + half + first], row[start + half + second]))
            byte += (TERM_PLACES) << half
        metadata.append(byte)
    return values, metadata


def bytes_24(n, k, bits):
    return n * (k // 4) * (2 * bits + 2 * 2) // 8

# %% replace=challenge-kernel
@triton.jit
def unpack_kernel(source, target, count, BLOCK: tl.constexpr):
    """One nibble at a time."""
    w = block(0, BLOCK)
    words = tl.load(source + w, w < count, 0)
    for i in tl.static_range(4):
        first = (words >> (4 * i) & 15 | 25600).to(tl.int16)
        second = (words >> (4 * i + 16) & 15 | 25600).to(tl.int16)
        tl.store(target + 8 * w + TERM_LOWER_AT, first.to(tl.float16, bitcast=True) - 1032, w < count)
        tl.store(target + 8 * w + TERM_UPPER_AT, second.to(tl.float16, bitcast=True) - 1032, w < count)
