# The sums of b and of the one-query kernel are not corrected when a larger score turns up. Points: all but b and c.

# %% solve=*

# %% replace=g-why
With 128 queries, 64 keys and d = 128, o and the scores take 64 + 32 = 96 registers of a thread. A program does 128 FLOPs
per byte of k and v, one for each of its queries, and BLOCK_K does not matter. That is below 200, but the keys of a head stay
in the L2 cache, so memory is not the limit: products, exponentials and copies wait for each other.

# %% replace=b-absorb
import math


def absorb(state, scores, values):
    """Return the state (m, l, o) after one more block of scores and values."""
    m, l, o = state
    new = max(m, *scores)
    if new == -math.inf:
        return state
    factor = math.exp(m - new)
    weights = [math.exp(x - new) for x in scores]
    sums = [o[c] * factor + sum(w * value[c] for w, value in zip(weights, values, strict=True)) for c in range(len(o))]
    return new, l + sum(weights), sums

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
        l = l + tl.sum(p, axis=0)
        o = o * factor + tl.sum(p[:, None] * v, axis=0)
        m = new
    tl.store(y_ptr + (h * N + i) * D + c, (o / l).to(y_ptr.dtype.element_ty))
