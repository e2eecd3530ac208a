# The loop of the int4 kernel does not move its counter. Points: all but e, and f on a GPU.

# %% solve=*

# %% replace=f-why
At batch 8 the product moves 134 MB of weights for 1.1 GFLOP, so memory is the limit, and int4 brings almost four times
the speed. At 4,096 rows arithmetic is the limit: int4 weights bring nothing, and int8 or fp8 on both sides two times. A
weight of 4 bits has half a byte and m multiply-adds, so the batch of 51 follows from bits, bandwidth and peak. At 1,024
rows the kernel still unpacks every weight, once for each tile of rows.

# %% replace=e-kernel
@triton.jit
def int4_kernel(
    x_ptr, packed_ptr, scale_ptr, y_ptr,
    M, N, K,
    stride_xm, stride_xk,
    GROUP: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    n = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    j = tl.arange(0, GROUP // 2)
    rows = x_ptr + m[:, None] * stride_xm
    acc = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    group = 0
    while group < K // GROUP:
        byte = tl.load(
            packed_ptr + n[None, :] * (K // 2) + group * (GROUP // 2) + j[:, None], mask=(n < N)[None, :], other=0
        )
        scale = tl.load(scale_ptr + n * (K // GROUP) + group, mask=n < N, other=0.0)
        low = (byte & 15).to(tl.float16) - 8
        high = (byte >> 4).to(tl.float16) - 8
        start = group * GROUP + j
        x_low = tl.load(rows + (start + TERM_LOW_AT)[None, :] * stride_xk, mask=(m < M)[:, None], other=0.0)
        x_high = tl.load(rows + (start + TERM_HIGH_AT)[None, :] * stride_xk, mask=(m < M)[:, None], other=0.0)
        part = tl.dot(x_low, low)
        part = tl.dot(x_high, high, part)
        acc += part * scale.to(tl.float32)[None, :]
    out = y_ptr + m[:, None] * N + n[None, :]
    tl.store(out, acc.to(tl.float16), mask=(m < M)[:, None] & (n < N)[None, :])
