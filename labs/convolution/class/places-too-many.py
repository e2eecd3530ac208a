# The output size is rounded up, and an element of the window matrix is sought with columns before channels. Points:
# all but a and b.

# %% solve=*

# %% replace=f-why
Tiles of 128 x 128: the second layer has 196 x 4 = 784 tiles, 5.9 rounds of 132; the third has 49 x 2 = 98, one round in
which 34 multiprocessors wait. The second does 102 FLOPs per byte, less than 200, so memory limits it; the third does
nearly 1,000, so arithmetic does. Larger tiles do not help the second, and leave more of the GPU idle in the third.

# %% replace=a-counts
def output_size(size, taps, stride, padding):
    return triton.cdiv(size + 2 * padding - taps + 1, stride) + (taps > 1) * (stride > 1)


def multiply_adds(n, size, c, k, taps, stride, padding):
    return n * output_size(size, taps, stride, padding) ** 2 * k * taps**2 * c


def copied_bytes(n, size, c, k, taps, stride, padding, itemsize):
    windows = n * output_size(size, taps, stride, padding) ** 2 * taps**2 * c
    return implicit_bytes(n, size, c, k, taps, stride, padding, itemsize) + 2 * windows * itemsize


def implicit_bytes(n, size, c, k, taps, stride, padding, itemsize):
    result = n * output_size(size, taps, stride, padding) ** 2 * k
    return (n * size**2 * c + k * taps**2 * c + result) * itemsize


def separate_bytes(n, size, c, k, taps, stride, padding, itemsize):
    result = n * output_size(size, taps, stride, padding) ** 2 * k
    return implicit_bytes(n, size, c, k, taps, stride, padding, itemsize) + (4 * result + k) * itemsize


def fused_bytes(n, size, c, k, taps, stride, padding, itemsize):
    return implicit_bytes(n, size, c, k, taps, stride, padding, itemsize) + k * itemsize

# %% replace=b-element
def window_element(m, j, size, c, taps, stride, padding):
    places = (size + 2 * padding - taps) // stride + 1
    row = m // places % places * stride - padding + j // (c * taps)
    column = m % places * stride - padding + j % taps
    inside = 0 <= row < size and 0 <= column < size
    return (m // places**2, row, column, j // taps % c) if inside else None
