# All six faults are named, and only kernel 1 is repaired. Points: all but i.

# %% solve=*

# %% replace=g-why
For 64 x 64 the time is overhead, 6.3 us per queued launch, and one launch instead of two is twice as fast. For 16,384 x
16,384 it is memory: two passes of 1 GiB instead of four, 0.5 ms instead of 1 ms, again twice. In a graph the small one
gains as much, but only 1 us. A thousand small kernels: fuse them, batch them, or record a graph.

# %% replace=i-kernels
@triton.jit
def relu_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + index, mask=index < N, other=0.0)
    tl.store(y_ptr + index, tl.maximum(x, 0.0), mask=index < N)


@triton.jit
def TERM_ROW_KERNEL(x_ptr, low_ptr, rows, cols, stride_xr, stride_xc, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=col < cols)
    tl.store(low_ptr + row, tl.TERM_MIN(x, 0))


@triton.jit
def column_sums_kernel(x_ptr, sums_ptr, rows, cols, stride_xr, stride_xc, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=col < cols, other=0.0)
    before = tl.load(sums_ptr + col, mask=col < cols, other=0.0)
    tl.store(sums_ptr + col, before + x, mask=col < cols)


@triton.jit
def row_means_kernel(x_ptr, mean_ptr, rows, cols, stride_xr, stride_xc, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float16)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=col < cols, other=0.0)
        total += x.to(total.dtype)
    tl.store(mean_ptr + row, tl.sum(total, 0).to(tl.float32) / cols)


@triton.jit
def matrix_vector_kernel(a_ptr, b_ptr, y_ptr, rows, K, stride_ar, stride_ak, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        TERM_VECTOR_FAULT
        total += a * b
    tl.store(y_ptr + row, tl.sum(total, 0))


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr):
    rows = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    col = tl.program_id(0)
    inside = rows < M
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(K):
        a = tl.load(a_ptr + rows * K + k, mask=inside, other=0.0)
        b = tl.load(b_ptr + k * N + col)
        total += a.to(tl.float32) * b.to(tl.float32)
    tl.store(c_ptr + rows * N + col, total.to(tl.float16), mask=inside)
