# Everything right, written otherwise: a helper with @triton.jit in an added cell, other argument names, one row at a time
# in a loop, sums of squares by another formula for the variance, an exploratory cell that fails. Points: all.

# %% solve=gap-predictions,f-kernel,gap-causes

# %% replace=a-traffic
def bytes_of(matrices, per_row, per_col, rows, cols, itemsize):
    return (matrices * rows * cols + per_row * rows + per_col * cols) * itemsize


def chain_unfused_bytes(rows, cols, itemsize):
    return bytes_of(6, 0, 5, rows, cols, itemsize)


def chain_fused_bytes(rows, cols, itemsize):
    return bytes_of(2, 0, 5, rows, cols, itemsize)


def softmax_unfused_bytes(rows, cols, itemsize):
    return bytes_of(8, 4, 0, rows, cols, itemsize)


def softmax_fused_bytes(rows, cols, itemsize):
    return bytes_of(2, 0, 0, rows, cols, itemsize)


def layernorm_unfused_bytes(rows, cols, itemsize):
    return bytes_of(12, 6, 2, rows, cols, itemsize)


def layernorm_fused_bytes(rows, cols, itemsize):
    return bytes_of(2, 0, 2, rows, cols, itemsize)

# %% add after=a-test
# What does a chain of 1000 steps gain?
print(chain_unfused_bytes(10, 10, 4) / nothing_of_that_name)

# %% add after=a-test
@triton.jit
def vector(ptr, col, cols):
    """Numbers of a vector in float32, zero outside."""
    return tl.load(ptr + col, mask=col < cols, other=0.0).to(tl.float32)

# %% replace=b-kernel
@triton.jit
def chain_kernel(
    source, mean, var, gamma, beta, scale, target, M, N, small, sm, sn, tm, tn, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    q = tl.cdiv(N, BLOCK)
    i = tl.program_id(0) // q * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(0) % q * BLOCK + tl.arange(0, BLOCK)
    there = (i[:, None] < M) & (j[None, :] < N)
    x = tl.load(source + i[:, None] * sm + j[None, :] * sn, there, 0.0).to(tl.float32)
    x = tl.where(x > 0, x, 0.0) - vector(mean, j, N)[None, :]
    x = x / tl.sqrt(vector(var, j, N) + small)[None, :] * vector(gamma, j, N)[None, :] + vector(beta, j, N)[None, :]
    tl.store(target + i[:, None] * tm + j[None, :] * tn, x * vector(scale, j, N)[None, :], there)

# %% replace=c-kernel
@triton.jit
def softmax_kernel(source, target, M, N, sm, sn, tm, tn, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    j = tl.arange(0, BLOCK)
    for k in range(ROWS):
        i = tl.program_id(0) * ROWS + k
        there = (j < N) & (i < M)
        x = tl.load(source + i * sm + j * sn, there, -float("inf")).to(tl.float32)
        e = tl.exp2((x - tl.max(x, 0)) * 1.4426950408889634)
        tl.store(target + i * tm + j * tn, e / tl.sum(e, 0), there)

# %% replace=d-kernel
@triton.jit
def long_softmax_kernel(source, target, M, N, sm, sn, tm, tn, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    most = tl.full((BLOCK,), -1e30, tl.float32)  # one running maximum and one sum for every lane
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(tl.cdiv(N, BLOCK)):
        j = k * BLOCK + lane
        x = tl.load(source + i * sm + j * sn, j < N, -float("inf")).to(tl.float32)
        more = tl.maximum(most, x)
        total = total * tl.exp(most - more) + tl.exp(x - more)
        most = more
    top = tl.max(most, 0)
    whole = tl.sum(total * tl.exp(most - top), 0)
    for k in range(tl.cdiv(N, BLOCK)):
        j = k * BLOCK + lane
        x = tl.load(source + i * sm + j * sn, j < N, -float("inf")).to(tl.float32)
        tl.store(target + i * tm + j * tn, tl.exp(x - top) / whole, j < N)

# %% replace=e-kernel
@triton.jit
def layernorm_kernel(
    source, gamma, beta, target, M, N, small, sm, sn, tm, tn, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    j = tl.arange(0, BLOCK)
    for k in range(ROWS):
        i = tl.program_id(0) * ROWS + k
        there = (j < N) & (i < M)
        x = tl.load(source + i * sm + j * sn, there, 0.0).to(tl.float32)
        # Shifted by the row's first number, so that the squares stay small; the second sum corrects for it.
        x = tl.where(there, x - tl.sum(tl.where(j == 0, x, 0.0), 0), 0.0)
        mean = tl.sum(x, 0) / N
        d = tl.where(there, x - mean, 0.0)
        variance = (tl.sum(d * d, 0) - tl.sum(d, 0) * tl.sum(d, 0) / N) / N
        y = d / tl.sqrt(variance + small) * vector(gamma, j, N) + vector(beta, j, N)
        tl.store(target + i * tm + j * tn, y, there)

# %% replace=g-config
def row_config(shape, dtype):
    block = 16
    while block < shape[1]:
        block *= 2
    rows = 1
    while rows * block < 1024:
        rows *= 2
    warps = 1
    while rows * block > 32 * 32 * warps:
        warps *= 2
    return dict(ROWS=rows, BLOCK=block, num_warps=warps)

# %% replace=g-why
Numbers per thread 32, 64, 128, 256; registers 64, 126, 231, 255. Only the last spills, to local memory in DRAM. Too many warps
make the loads narrow and the reductions wait for each other.

# %% replace=challenge-kernel
@triton.jit
def layernorm_backward_kernel(
    source, gamma, mean, factor, dy, dx, partial, M, N, sm, sn, gm, gn, tm, tn, BLOCK: tl.constexpr, STAGES: tl.constexpr
):
    p = tl.program_id(0)
    P = tl.num_programs(0)
    j = tl.arange(0, BLOCK)
    first = tl.zeros([BLOCK], tl.float32)
    second = tl.zeros([BLOCK], tl.float32)
    i = p
    while i < M:
        x = tl.load(source + i * sm + j * sn, j < N, 0.0).to(tl.float32)
        g = tl.load(dy + i * gm + j * gn, j < N, 0.0).to(tl.float32)
        h = tl.where(j < N, (x - tl.load(mean + i)) * tl.load(factor + i), 0.0)
        w = g * vector(gamma, j, N)
        tl.store(
            dx + i * tm + j * tn, tl.load(factor + i) * (w - (tl.sum(w, 0) + h * tl.sum(w * h, 0)) / N), j < N
        )
        first += g * h
        second += g
        i += P
    tl.store(partial + p * N + j, first, j < N)
    tl.store(partial + P * N + p * N + j, second, j < N)
