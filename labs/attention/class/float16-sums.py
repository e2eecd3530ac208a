# The output so far is kept in the dtype of the values. Points: all but d and f; and g, whose kernel is f's.

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
        o = tl.dot(p.to(v.dtype), v, o * factor[:, None], input_precision="ieee").to(v.dtype).to(tl.float32)
        m = new
    out = y_ptr + h * stride_yh + i[:, None] * stride_yn + c[None, :] * stride_yd
    tl.store(out, (o / l[:, None]).to(y_ptr.dtype.element_ty), mask=(i < N)[:, None])

# %% replace=f-kernel
@triton.jit
def gqa_kernel(
    q_ptr, k_ptr, v_ptr, y_ptr, l_ptr,
    N, M, scale,
    stride_qh, stride_qn, stride_qd,
    stride_kh, stride_kn, stride_kd,
    stride_vh, stride_vn, stride_vd,
    stride_yh, stride_yn, stride_yd,
    D: tl.constexpr, GROUP: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Compute BLOCK_Q queries of one head, causal; GROUP heads share k and v. Store y and L."""
    first = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_Q  # those with most keys begin
    i = first + tl.arange(0, BLOCK_Q)
    h = tl.program_id(1).to(tl.int64)
    c = tl.arange(0, D)
    shared_k = k_ptr + h // GROUP * stride_kh
    shared_v = v_ptr + h // GROUP * stride_vh
    queries = q_ptr + h * stride_qh + i[:, None] * stride_qn + c[None, :] * stride_qd
    q = tl.load(queries, mask=(i < N)[:, None], other=0.0)
    m = tl.full((BLOCK_Q,), float("-inf"), dtype=tl.float32)
    l = tl.zeros((BLOCK_Q,), dtype=tl.float32)
    o = tl.zeros((BLOCK_Q, D), dtype=tl.float32)
    seen = tl.minimum(tl.minimum(first + BLOCK_Q, N), M)
    free = tl.minimum(first, M) // BLOCK_K * BLOCK_K
    for masked in tl.static_range(2):
        if masked:
            begin, end = free, seen
        else:
            begin, end = 0, free
        for start in range(begin, end, BLOCK_K):
            j = start + tl.arange(0, BLOCK_K)
            keys = shared_k + j[None, :] * stride_kn + c[:, None] * stride_kd
            values = shared_v + j[:, None] * stride_vn + c[None, :] * stride_vd
            if masked:
                k = tl.load(keys, mask=(j < M)[None, :], other=0.0)
                v = tl.load(values, mask=(j < M)[:, None], other=0.0)
            else:
                k = tl.load(keys)
                v = tl.load(values)
            x = tl.dot(q, k, input_precision="ieee") * (scale * 1.44269504)
            if masked:
                x = tl.where((j[None, :] <= i[:, None]) & (j < M)[None, :], x, float("-inf"))
            new = tl.maximum(m, tl.max(x, axis=1))
            factor = tl.exp2(m - new)
            p = tl.exp2(x - new[:, None])
            l = l * factor + tl.sum(p, axis=1)
            o = tl.dot(p.to(v.dtype), v, o * factor[:, None], input_precision="ieee").to(v.dtype).to(tl.float32)
            m = new
    out = y_ptr + h * stride_yh + i[:, None] * stride_yn + c[None, :] * stride_yd
    tl.store(out, (o / l[:, None]).to(y_ptr.dtype.element_ty), mask=(i < N)[:, None])
    tl.store(l_ptr + h * N + i, (m + tl.log2(l)) * 0.69314718, mask=i < N)
