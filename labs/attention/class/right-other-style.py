# Everything right, written otherwise: helpers with @triton.jit in an added cell, other argument names, counts by listing, a
# state in units of log2, one loop with a mask, scores turned, an exploratory cell that fails. Points: all.

# %% solve=gap-predictions,gap-causes

# %% replace=g-why
With 128 queries, 64 keys and d = 128, o and the scores take 64 + 32 = 96 registers of a thread. A program does 128 FLOPs
per byte of k and v, one for each of its queries, and BLOCK_K does not matter. That is below 200, but the keys of a head stay
in the L2 cache, so memory is not the limit: products, exponentials and copies wait for each other.

# %% replace=a-counts
def numbers(heads, n, d):
    return {"row": heads * n * d, "square": sum(heads * n for _ in range(n))}


def product_flops(heads, n, d):
    return 2 * 2 * numbers(heads, n, d)["square"] * d


def separate_bytes(heads, n, d, itemsize):
    found = numbers(heads, n, d)
    kernels = [2 * found["row"] + found["square"], 2 * found["square"], found["square"] + 2 * found["row"]]
    return sum(kernels) * itemsize


def fused_bytes(heads, n, d, itemsize):
    return blocked_bytes(heads, n, d, n, itemsize)


def blocked_bytes(heads, n, d, block, itemsize):
    return sum(2 * min(block, n - first) + 2 * n for first in range(0, n, block)) * heads * d * itemsize


def shared_bytes(heads, kv_heads, n, d, itemsize):
    return sum(numbers(count, n, d)["row"] for count in (heads, kv_heads, kv_heads, heads)) * itemsize

# %% replace=b-absorb
def absorb(state, scores, values):
    m, l, o = state
    o = list(o)
    for x, value in zip(scores, values):
        if x == float("-inf"):
            continue
        if x > m:
            shrink = 2.718281828459045 ** (m - x) if m > float("-inf") else 0.0
            l, o, m = l * shrink, [one * shrink for one in o], x
        weight = torch.tensor(x - m, dtype=torch.float64).exp().item()
        l += weight
        o = [one + weight * other for one, other in zip(o, value)]
    return [m, l, o]

# %% add after=b-test
# How large is the largest score?
print(nothing_of_that_name)

# %% add after=b-test
LOG2_E = 1.4426950408889634


@triton.jit
def rows(first, SIZE: tl.constexpr):
    """SIZE numbers from `first` on."""
    return first + tl.arange(0, SIZE)


@triton.jit
def after(x, m, l, o):
    """The state of queries that lie across, after scores with the keys down, in units of log2; and the shares."""
    new = tl.maximum(m, tl.max(x, 0))
    return tl.exp2(x - new[None, :]), tl.exp2(m - new), new


@triton.jit
def sweep(
    q, k, v, N, M, end, i, h, shared, scale, kn, kd, vn, vd, CAUSAL: tl.constexpr,
    D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Output and state of the queries i, whose numbers are `q`, D x BLOCK_Q."""
    c = tl.arange(0, D)
    m = tl.full((BLOCK_Q,), float("-inf"), tl.float32)
    l = tl.zeros((BLOCK_Q,), tl.float32)
    o = tl.zeros((D, BLOCK_Q), tl.float32)
    for first in range(0, end, BLOCK_K):
        j = rows(first, BLOCK_K)
        real = (j < M)[:, None]
        keys = tl.load(k + j[:, None] * kn + c[None, :] * kd, real, 0.0)
        x = tl.dot(keys, q, input_precision="ieee") * (scale * 1.4426950408889634)
        if CAUSAL:
            real = real & (j[:, None] <= i[None, :])
        x = tl.where(real, x, float("-inf"))
        p, shrink, m = after(x, m, l, o)
        l = l * shrink + tl.sum(p, 0)
        values = tl.load(v + j[None, :] * vn + c[:, None] * vd, (j < M)[None, :], 0.0)
        o = o * shrink[None, :] + tl.dot(values, p.to(values.dtype), input_precision="ieee")
    return o / l[None, :], m + tl.log2(l)

# %% replace=c-kernel
@triton.jit
def row_kernel(q, k, v, y, N, M, scale, D: tl.constexpr, BLOCK: tl.constexpr):
    place = (tl.program_id(1) * N + tl.program_id(0)) * D + tl.arange(0, D)
    query = tl.load(q + place).to(tl.float32)[:, None]
    m = tl.full((1,), float("-inf"), tl.float32)
    l = tl.zeros((1,), tl.float32)
    o = tl.zeros((D, 1), tl.float32)
    for first in range(0, M, BLOCK):
        j = rows(first, BLOCK)
        theirs = tl.program_id(1) * M * D + j[None, :] * D + tl.arange(0, D)[:, None]
        keys = tl.load(k + theirs, (j < M)[None, :], 0.0).to(tl.float32)
        x = tl.where(j < M, tl.sum(keys * query, 0) * scale * 1.4426950408889634, float("-inf"))[:, None]
        p, shrink, m = after(x, m, l, o)
        l = l * shrink + tl.sum(p, 0)
        values = tl.load(v + theirs, (j < M)[None, :], 0.0).to(tl.float32)
        o = o * shrink + tl.sum(values * tl.trans(p), 1)[:, None]
    tl.store(y + place[:, None], o / l)

# %% replace=d-kernel
@triton.jit
def attention_kernel(
    q, k, v, y, N, M, scale, qh, qn, qd, kh, kn, kd, vh, vn, vd, yh, yn, yd,
    D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    h, i, c = tl.program_id(1), rows(tl.program_id(0) * BLOCK_Q, BLOCK_Q), tl.arange(0, D)
    mine = (i < N)[None, :]
    query = tl.load(q + h * qh + i[None, :] * qn + c[:, None] * qd, mine, 0.0)
    o, _ = sweep(
        query, k + h * kh, v + h * vh, N, M, M, i, h, h, scale, kn, kd, vn, vd, False, D, BLOCK_Q, BLOCK_K
    )
    tl.store(y + h * yh + i[None, :] * yn + c[:, None] * yd, o, mine)

# %% replace=e-kernel
def key_blocks(block, block_q, block_k, n, m):
    first, last = block * block_q, min((block + 1) * block_q, n) - 1
    starts = [start for start in range(0, m, block_k) if start <= last]
    free = [start for start in starts if start + block_k - 1 <= first and start + block_k <= m]
    return [len(free), len(starts) - len(free)]


@triton.jit
def causal_kernel(
    q, k, v, y, N, M, scale, qh, qn, qd, kh, kn, kd, vh, vn, vd, yh, yn, yd,
    D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    h, i, c = tl.program_id(1), rows(tl.program_id(0) * BLOCK_Q, BLOCK_Q), tl.arange(0, D)
    mine = (i < N)[None, :]
    query = tl.load(q + h * qh + i[None, :] * qn + c[:, None] * qd, mine, 0.0)
    end = tl.minimum((tl.program_id(0) + 1) * BLOCK_Q, M)
    o, _ = sweep(
        query, k + h * kh, v + h * vh, N, M, end, i, h, h, scale, kn, kd, vn, vd, True, D, BLOCK_Q, BLOCK_K
    )
    tl.store(y + h * yh + i[None, :] * yn + c[:, None] * yd, o, mine)

# %% replace=f-kernel
@triton.jit
def gqa_kernel(
    q, k, v, y, L, N, M, scale, qh, qn, qd, kh, kn, kd, vh, vn, vd, yh, yn, yd,
    D: tl.constexpr, GROUP: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    h, i, c = tl.program_id(1), rows(tl.program_id(0) * BLOCK_Q, BLOCK_Q), tl.arange(0, D)
    mine = (i < N)[None, :]
    query = tl.load(q + h * qh + i[None, :] * qn + c[:, None] * qd, mine, 0.0)
    end = tl.minimum((tl.program_id(0) + 1) * BLOCK_Q, M)
    theirs = h // GROUP
    o, logsum = sweep(
        query, k + theirs * kh, v + theirs * vh, N, M, end, i, h, theirs, scale, kn, kd, vn, vd, True,
        D, BLOCK_Q, BLOCK_K,
    )  # fmt: skip
    tl.store(y + h * yh + i[None, :] * yn + c[:, None] * yd, o, mine)
    tl.store(L + h * N + i, logsum / 1.4426950408889634, i < N)

# %% replace=g-config
def config(shape, dtype):
    return dict(BLOCK_Q=64 if shape[3] == 128 else 128, BLOCK_K=64, num_warps=4, num_stages=2)

# %% replace=challenge-kernel
@triton.jit
def shares(q, k, L, i, j, N, M, scale):
    """Shares of queries i, down, for keys j, across."""
    x = tl.dot(q, k.T, input_precision="ieee") * scale - L[:, None]
    real = (j[None, :] <= i[:, None]) & (i[:, None] < N) & (j[None, :] < M)
    return tl.where(real, tl.exp(tl.where(real, x, 0.0)), 0.0)


@triton.jit
def dq_kernel(
    q, k, v, dy, L, delta, dq, N, M, scale, D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    h, i, c = tl.program_id(1), rows(tl.program_id(0) * BLOCK_Q, BLOCK_Q), tl.arange(0, D)[None, :]
    mine, real = (h * N + i[:, None]) * D + c, (i < N)[:, None]
    query, dy_rows = tl.load(q + mine, real, 0.0), tl.load(dy + mine, real, 0.0)
    logsum, less = tl.load(L + h * N + i, i < N, 0.0), tl.load(delta + h * N + i, i < N, 0.0)
    total = tl.zeros((BLOCK_Q, D), tl.float32)
    for first in range(0, tl.minimum((tl.program_id(0) + 1) * BLOCK_Q, M), BLOCK_K):
        j = rows(first, BLOCK_K)
        theirs, here = (h * M + j[:, None]) * D + c, (j < M)[:, None]
        keys, values = tl.load(k + theirs, here, 0.0), tl.load(v + theirs, here, 0.0)
        p = shares(query, keys, logsum, i, j, N, M, scale)
        ds = p * (tl.dot(dy_rows, values.T, input_precision="ieee") - less[:, None])
        total += tl.dot(ds.to(keys.dtype), keys, input_precision="ieee")
    tl.store(dq + mine, total * scale, real)


@triton.jit
def dkdv_kernel(
    q, k, v, dy, L, delta, dk, dv, N, M, scale, D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    h, j, c = tl.program_id(1), rows(tl.program_id(0) * BLOCK_K, BLOCK_K), tl.arange(0, D)[None, :]
    mine, real = (h * M + j[:, None]) * D + c, (j < M)[:, None]
    keys, values = tl.load(k + mine, real, 0.0), tl.load(v + mine, real, 0.0)
    one, other = tl.zeros((BLOCK_K, D), tl.float32), tl.zeros((BLOCK_K, D), tl.float32)
    first = tl.program_id(0) * BLOCK_K // BLOCK_Q * BLOCK_Q
    while first < N:
        i = rows(first, BLOCK_Q)
        theirs, here = (h * N + i[:, None]) * D + c, (i < N)[:, None]
        query, dy_rows = tl.load(q + theirs, here, 0.0), tl.load(dy + theirs, here, 0.0)
        logsum, less = tl.load(L + h * N + i, i < N, 0.0), tl.load(delta + h * N + i, i < N, 0.0)
        p = shares(query, keys, logsum, i, j, N, M, scale)
        other += tl.dot(p.to(dy_rows.dtype).T, dy_rows, input_precision="ieee")
        ds = p * (tl.dot(dy_rows, values.T, input_precision="ieee") - less[:, None])
        one += tl.dot(ds.to(query.dtype).T, query, input_precision="ieee")
        first += BLOCK_Q
    tl.store(dk + mine, one * scale, real)
    tl.store(dv + mine, other, real)
