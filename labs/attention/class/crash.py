# The kernel for blocks of queries stores to wild addresses: the head's offset is shifted by 40 bits. On a CPU the judge
# names the addresses; on a GPU, where it cannot see them, the process dies. Question d alone is lost. Points: all but d.

# %% solve=*

# %% replace=g-why
With 128 queries, 64 keys and d = 128, o and the scores take 64 + 32 = 96 registers of a thread. A program does 128 FLOPs
per byte of k and v, one for each of its queries, and BLOCK_K does not matter. That is below 200, but the keys of a head stay
in the L2 cache, so memory is not the limit: products, exponentials and copies wait for each other.

# %% replace=d-kernel
@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, y_ptr,
    N, M, scale,
    stride_qh, stride_qn, stride_qd,
    stride_kh, stride_kn, stride_kd,
    stride_vh, stride_vn, stride_vd,
    stride_yh, stride_yn, stride_yd,
    D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Compute BLOCK_Q queries of one head per program."""
    i = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    h = tl.program_id(1).to(tl.int64)  # 64-bit, for h * stride can pass 2^31
    c = tl.arange(0, D)
    queries = q_ptr + h * stride_qh + i[:, None] * stride_qn + c[None, :] * stride_qd
    q = tl.load(queries, mask=(i < N)[:, None], other=0.0)
    m = tl.full((BLOCK_Q,), float("-inf"), dtype=tl.float32)
    l = tl.zeros((BLOCK_Q,), dtype=tl.float32)
    o = tl.zeros((BLOCK_Q, D), dtype=tl.float32)
    for start in range(0, M, BLOCK_K):
        j = start + tl.arange(0, BLOCK_K)
        keys = k_ptr + h * stride_kh + j[None, :] * stride_kn + c[:, None] * stride_kd
        k = tl.load(keys, mask=(j < M)[None, :], other=0.0)
        x = tl.dot(q, k, input_precision="ieee") * scale
        x = tl.where((j < M)[None, :], x, float("-inf"))
        new = tl.maximum(m, tl.max(x, axis=1))
        factor = tl.exp(m - new)
        p = tl.exp(x - new[:, None])
        l = l * factor + tl.sum(p, axis=1)
        values = v_ptr + h * stride_vh + j[:, None] * stride_vn + c[None, :] * stride_vd
        v = tl.load(values, mask=(j < M)[:, None], other=0.0)
        o = tl.dot(p.to(v.dtype), v, o * factor[:, None], input_precision="ieee")
        m = new
    out = y_ptr + ((h + 1) << 40) * stride_yh + i[:, None] * stride_yn + c[None, :] * stride_yd
    tl.store(out, (o / l[:, None]).to(y_ptr.dtype.element_ty), mask=(i < N)[:, None])
