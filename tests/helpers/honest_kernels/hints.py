# Type hints, as editors and other people's tutorials have them.

# %% a hint for every argument
# right: 2 * x
@triton.jit
def kernel(x_ptr: torch.Tensor, out_ptr: torch.Tensor, size: int, TILE: tl.constexpr) -> None:
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% hints of the language's own types
# right: 2 * x
@triton.jit
def kernel(x_ptr: tl.tensor, out_ptr: tl.tensor, size: tl.int32, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% an int with a hint
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, M: int, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < M) * 2, mask=i < M)

# %% hints in a helper
# right: 2 * x
@triton.jit
def twice(x: tl.tensor, times: tl.constexpr = 2) -> tl.tensor:
    return x * times


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, twice(tl.load(x_ptr + i, mask=i < size)), mask=i < size)

# %% hints as text
# gpu: 2 * x
@triton.jit
def kernel(x_ptr: "*fp32", out_ptr: "*fp32", size: "int", TILE: "tl.constexpr") -> "None":
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% a pointer that is only read
# right: 2 * x
@triton.jit
def kernel(x_ptr: tl.const, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% a local with a hint
# right: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    factor: tl.constexpr = 2
    i: tl.tensor = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * factor, mask=i < size)

# %% constexpr and jit by their own names
# right: 2 * x
import triton.language as tl
from triton import jit
from triton.language import constexpr


@jit
def kernel(x_ptr, out_ptr, size, TILE: constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% the language under another name
# gpu: 2 * x
import triton.language as T


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: T.constexpr):
    i = T.program_id(0) * TILE + T.arange(0, TILE)
    T.store(out_ptr + i, T.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% a module from a package
# right: 2 * x
from triton import language as tl


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% the language by its full name
# gpu: 2 * x
@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: triton.language.constexpr):
    i = triton.language.program_id(0) * TILE + triton.language.arange(0, TILE)
    x = triton.language.load(x_ptr + i, mask=i < size)
    triton.language.store(out_ptr + i, x * 2, mask=i < size)

# %% words of the language by their own names
# gpu: 2 * x
from triton.language import arange, load, program_id, store


@triton.jit
def kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = program_id(0) * TILE + arange(0, TILE)
    store(out_ptr + i, load(x_ptr + i, mask=i < size) * 2, mask=i < size)

# %% hints of another module
# right: 2 * x
from typing import Optional


@triton.jit
def kernel(x_ptr, out_ptr, size: Optional[int], TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 2, mask=i < size)
