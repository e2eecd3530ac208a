# Names: what blocks, pointers and types know of themselves, and functions of other modules.

# %% the type that a pointer points to
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size)
    tl.store(out_ptr + i, (x * 2).to(out_ptr.type.element_ty), mask=i < size)

# %% the same by its dtype
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size).to(tl.float32)
    tl.store(out_ptr + i, (x * 2).to(out_ptr.dtype.element_ty), mask=i < size)

# %% the type of a block's elements
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size)
    two = tl.full((TILE,), 2, x.type.scalar)
    tl.store(out_ptr + i, x * two, mask=i < size)

# %% how many elements a block has
# right: 16 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size)
    tl.store(out_ptr + i, x * x.numel, mask=i < size)

# %% the shape of a block
# right: 16 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size)
    tl.store(out_ptr + i, x * x.shape[0], mask=i < size)

# %% whether a type is a float
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size)
    if x.dtype.is_floating():
        x = x * 2
    tl.store(out_ptr + i, x, mask=i < size)

# %% how many bits a type has
# right: 32 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size)
    tl.store(out_ptr + i, x * x.dtype.primitive_bitwidth, mask=i < size)

# %% a pointer type
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x_ptr = x_ptr.to(tl.pointer_type(tl.float32))
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% what becomes of a NaN
# right: torch.relu(x)
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size)
    tl.store(out_ptr + i, tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL), mask=i < size)

# %% Triton's own cdiv in a kernel
# right: x * 3
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    times: tl.constexpr = triton.cdiv(TILE + 17, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * times, mask=i < size)

# %% the next power of two
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    BLOCK: tl.constexpr = triton.next_power_of_2(TILE)
    i = tl.program_id(0) * TILE + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% pi of the module math
# right: x * math.pi
import math


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * math.pi, mask=i < size)

# %% Python's own sum
# refused: sum
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size)
    tl.store(out_ptr + i, sum((x, x)), mask=i < size)

# %% Python's own min and max
# right: x.clamp(0, 1)
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    left = min(size - tl.program_id(0) * TILE, TILE)
    x = tl.load(x_ptr + i, mask=tl.arange(0, TILE) < left)
    tl.store(out_ptr + i, tl.minimum(tl.maximum(x, 0.0), 1.0), mask=i < size)

# %% methods in place of functions
# gpu: torch.exp(x)
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size)
    tl.store(out_ptr + i, x.to(tl.float32).exp(), mask=i < size)

# %% a method of reduction
# right: x - x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i, mask=i < size, other=0.0)
    total = x.sum(axis=0) - tl.sum(x, axis=0)
    tl.store(out_ptr + i, x - x + total, mask=i < size)

# %% a library of the device
# refused: libdevice
from triton.language.extra import libdevice


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, libdevice.tanh(tl.load(x_ptr + i, mask=i < size)), mask=i < size)

# %% a name that is defined nowhere
# refused: FACTOR
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * FACTOR, mask=i < size)

# %% torch in a kernel
# refused: torch
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, torch.relu(tl.load(x_ptr + i, mask=i < size)), mask=i < size)

# %% a tensor descriptor, loaded and stored by functions
# right: x * 2
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    first = tl.program_id(0) * TILE
    source = tl.make_tensor_descriptor(x_ptr, [size], [1], [TILE])
    target = tl.make_tensor_descriptor(out_ptr, [size], [1], [TILE])
    doubled = tl.load_tensor_descriptor(source, [first]) * 2
    if first + TILE <= size:
        tl.store_tensor_descriptor(target, [first], doubled)
    else:  # a store through a descriptor wrote 40 of 37 numbers on an H200: whole 16 bytes
        i = first + tl.arange(0, TILE)
        tl.store(out_ptr + i, doubled, mask=i < size)

# %% four random blocks at once
# right: x * 2
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    first, second, third, fourth = tl.rand4x(7, i)
    x = tl.load(x_ptr + i, mask=i < size)
    tl.store(out_ptr + i, x * tl.where(first + second + third + fourth < 4, 2, 3), mask=i < size)
