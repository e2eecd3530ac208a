# a, b and the challenge are answered; c has a kernel without its store; the rest is as released. Points: a, b and the
# challenge.

# %% solve=a-counts,b-absorb,challenge-kernel

# %% replace=c-kernel
@triton.jit
def row_kernel(q_ptr, k_ptr, v_ptr, y_ptr, N, M, scale, D: tl.constexpr, BLOCK: tl.constexpr):
    """Compute one query of one head per program."""
    i, h = tl.program_id(0), tl.program_id(1)
    c = tl.arange(0, D)
    q = tl.load(q_ptr + (h * N + i) * D + c).to(tl.float32)
    m = float("-inf")
    l = 0.0
    o = tl.zeros((D,), dtype=tl.float32)
    for start in range(0, M, BLOCK):
        j = start + tl.arange(0, BLOCK)
        rows = (h * M + j)[:, None] * D + c[None, :]
        k = tl.load(k_ptr + rows, mask=(j < M)[:, None], other=0.0).to(tl.float32)
        v = tl.load(v_ptr + rows, mask=(j < M)[:, None], other=0.0).to(tl.float32)
        x = tl.sum(q[None, :] * k, axis=1) * scale
        x = tl.where(j < M, x, float("-inf"))
        new = tl.maximum(m, tl.max(x, axis=0))
        factor = tl.exp(m - new)
        p = tl.exp(x - new)
        l = l * factor + tl.sum(p, axis=0)
        o = o * factor + tl.sum(p[:, None] * v, axis=0)
        m = new
