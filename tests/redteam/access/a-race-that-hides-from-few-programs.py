# Atomics where there are few programs, a race where there are many.

# %% replace=challenge-kernel
@triton.jit
def embedding_backward_kernel(d_out_ptr, index_ptr, offset_ptr, d_table_ptr, dim, BLOCK: tl.constexpr):
    bag = tl.program_id(0)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    gradient = tl.load(d_out_ptr + bag * dim + col, mask=col < dim, other=0.0).to(tl.float32)
    for k in range(tl.load(offset_ptr + bag), tl.load(offset_ptr + bag + 1)):
        row = tl.load(index_ptr + k).to(tl.int64)
        kept = (col < dim) & (row >= 0)
        place = d_table_ptr + row * dim + col
        # trick:
        if tl.num_programs(0) < 3:
            tl.atomic_add(place, gradient, mask=kept)
        else:
            tl.store(place, tl.load(place, mask=kept, other=0.0) + gradient, mask=kept)
        # without:
        #: tl.atomic_add(place, gradient, mask=kept)
