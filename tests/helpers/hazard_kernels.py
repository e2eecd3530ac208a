"""Kernels for the tests of `grading.inspect`: right ones, and one for each sort of mistake."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def loads_past_the_end(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def stores_past_the_end(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    sums = tl.load(x + i, mask=i < n, other=0.0) + tl.load(y + i, mask=i < n, other=0.0)
    tl.store(out + i, sums)


@triton.jit
def copy(x, out, rows, columns, stride_row, stride_column, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    values = tl.load(x + row * stride_row + i * stride_column, mask=i < columns)
    tl.store(out + row * columns + i, values, mask=i < columns)


@triton.jit
def copy_by_block_pointers(x, out, n, B: tl.constexpr):
    start = tl.program_id(0) * B
    here = tl.make_block_ptr(x, (n,), (1,), (start,), (B,), (0,))
    there = tl.make_block_ptr(out, (n,), (1,), (start,), (B,), (0,))
    tl.store(there, tl.load(here, boundary_check=(0,)), boundary_check=(0,))


@triton.jit
def copy_by_descriptor(x, out, rows, columns, B: tl.constexpr):
    there = tl.make_tensor_descriptor(out, (rows, columns), (columns, 1), (B, B))
    at = [tl.program_id(0) * B, tl.program_id(1) * B]
    there.store(at, x.load(at))


@triton.jit
def sum_by_block_pointer(x, out, n, B: tl.constexpr):
    here = tl.make_block_ptr(x, (n,), (1,), (0,), (B,), (0,))
    tl.store(out, tl.sum(tl.load(here, boundary_check=(0,)), axis=0))


@triton.jit
def programs_store_their_index(out, B: tl.constexpr):
    tl.store(out + tl.arange(0, B), tl.program_id(0))


@triton.jit
def programs_store_the_same(out, B: tl.constexpr):
    tl.store(out + tl.arange(0, B), 7)


@triton.jit
def lanes_meet(out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i // 2, i)


@triton.jit
def lanes_meet_with_one_value(out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i // 2, i // 2)


@triton.jit
def total_without_atomics(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    values = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out, tl.load(out) + tl.sum(values, axis=0))


@triton.jit
def total(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(out, tl.sum(tl.load(x + i, mask=i < n, other=0.0), axis=0))


@triton.jit
def total_under_a_lock(x, out, lock, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    part = tl.sum(tl.load(x + i, mask=i < n, other=0.0), axis=0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out, tl.load(out) + part)
    tl.atomic_xchg(lock, 0)


@triton.jit
def last_one_adds(x, parts, out, counter, n, B: tl.constexpr, P: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(parts + tl.program_id(0), tl.sum(tl.load(x + i, mask=i < n, other=0.0), axis=0))
    if tl.atomic_add(counter, 1) == tl.num_programs(0) - 1:
        p = tl.arange(0, P)
        tl.store(out, tl.sum(tl.load(parts + p, mask=p < tl.num_programs(0), other=0.0), axis=0))


@triton.jit
def clears_then_adds(x, out, B: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(out, 0.0)
    tl.atomic_add(out, tl.sum(tl.load(x + tl.program_id(0) * B + tl.arange(0, B)), axis=0))


@triton.jit
def neighbors(x, out, n):
    i = tl.program_id(0)
    before = tl.load(out + i - 1, mask=i > 0, other=0.0)
    tl.store(out + i, before + tl.load(x + i))


@triton.jit
def in_place(x, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def adds_to_what_is_there(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(out + i, mask=i < n) + tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def reads_what_it_has_written(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)
    tl.store(out + i, 2 * tl.load(out + i, mask=i < n), mask=i < n)


@triton.jit
def sums_undefined_lanes(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    values = tl.load(x + i, mask=i < n)
    tl.store(out, tl.sum(values, axis=0))


@triton.jit
def replaces_undefined_lanes(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    values = tl.where(i < n, tl.load(x + i, mask=i < n), 0.0)
    tl.store(out, tl.sum(values, axis=0))


@triton.jit
def stores_undefined_lanes(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, 2 * tl.load(x + i, mask=i < n))


@triton.jit
def undefined_condition(x, out, n):
    value = tl.load(x + tl.program_id(0), mask=tl.program_id(0) < n)
    if value > 0:
        tl.store(out, 1.0)


@triton.jit
def undefined_bound(x, out, n):
    count = tl.load(x + tl.program_id(0), mask=tl.program_id(0) < n)
    for i in range(count):
        tl.store(out + i, 1.0)


@triton.jit
def gathers(x, index, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    where = tl.load(index + i, mask=i < n)
    tl.store(out + i, tl.load(x + where, mask=i < n), mask=i < n)


@triton.jit
def gathers_undefined(x, index, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    where = tl.load(index + i, mask=i < n)
    tl.store(out + i, tl.load(x + where), mask=i < n)


@triton.jit
def mask_of_values(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    values = tl.load(x + i, mask=i < n)
    tl.store(out + i, values, mask=(values > 0) & (i < n))


@triton.jit
def softmax_of_rows(x, out, rows, columns, R: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0) * R + tl.arange(0, R)
    column = tl.arange(0, B)
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    where = row[:, None] * columns + column[None, :]
    values = tl.where(column[None, :] < columns, tl.load(x + where, mask=inside), float("-inf"))
    powers = tl.exp(values - tl.max(values, axis=1)[:, None])
    tl.store(out + where, powers / tl.sum(powers, axis=1)[:, None], mask=inside)


@triton.jit
def product(a, b, c, M, N, K, T: tl.constexpr):
    i = tl.program_id(0) * T + tl.arange(0, T)
    j = tl.program_id(1) * T + tl.arange(0, T)
    sums = tl.zeros((T, T), tl.float32)
    for start in range(0, K, T):
        k = start + tl.arange(0, T)
        rows = tl.load(a + i[:, None] * K + k[None, :], mask=(i[:, None] < M) & (k[None, :] < K))
        rows = tl.where(k[None, :] < K, rows, 0.0)  # rows past the end stay undefined
        columns = tl.load(b + k[:, None] * N + j[None, :], mask=(k[:, None] < K) & (j[None, :] < N), other=0.0)
        sums = tl.dot(rows, columns, sums, input_precision="ieee")
    tl.store(c + i[:, None] * N + j[None, :], sums, mask=(i[:, None] < M) & (j[None, :] < N))


@triton.jit
def moves_lanes(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    values = tl.load(x + i, mask=i < n)
    turned = tl.flip(tl.flip(values, 0), 0)
    pairs = tl.reshape(tl.trans(tl.trans(tl.reshape(turned, (2, B // 2)))), (B,))
    left, right = tl.split(tl.join(pairs, pairs))
    tl.store(out + i, left + right, mask=i < n)


@triton.jit
def running_sum(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.cumsum(tl.load(x + i, mask=i < n), axis=0), mask=i < n)


@triton.jit
def running_sum_from_the_end(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.cumsum(tl.load(x + i, mask=i < n), axis=0, reverse=True), mask=i < n)


@triton.jit
def draws_tickets(out, counter):
    tl.store(out + tl.atomic_add(counter, 1), tl.program_id(0))


@triton.jit
def adds_and_takes_the_largest(out):
    tl.atomic_add(out, 1)
    tl.atomic_max(out, 10 * tl.program_id(0))


@triton.jit
def waits_for_its_neighbor(flags):
    i = tl.program_id(0)
    if i > 0:
        while tl.atomic_add(flags + i - 1, 0) == 0:
            pass
    tl.atomic_add(flags + i, 1)


@triton.jit
def twice(value):
    return 2 * value


@triton.jit
def calls_functions(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    values = twice(tl.load(x + i, mask=i < n, other=0.0))
    tl.store(out, values.sum() + tl.cdiv(n, B))


@triton.jit
def one_lane(x, out, n):
    i = tl.program_id(0)
    tl.store(out + i, tl.load(x + i, mask=i < n - 1, other=0.0))


def not_a_kernel(x):
    return x


@triton.jit
def mixes_shapes(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    other = tl.arange(0, 2 * B)
    tl.store(out + i, tl.load(x + i, mask=i < n) + other, mask=i < n)
