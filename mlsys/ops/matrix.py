"""Matrix products: matmul, batched matmul and the linear layer."""

from dataclasses import replace

from mlsys.core.arguments import positive_int
from mlsys.core.dtypes import bytes_per_element
from mlsys.ops.op import Op


def matmul(*, m: int, n: int, k: int, dtype: str = "fp16") -> Op:
    """C = A B with A of m x k, B of k x n and C of m x n.

    Formula: FLOPs = 2 m n k; bytes = size (m k + k n) read and size m n written.

    Args:
        m: rows of A and C.
        n: columns of B and C.
        k: columns of A, rows of B.
        dtype: format of all three matrices.

    Raises:
        InvalidValue: if a size is not a positive integer.
        UnknownName: if the dtype is unknown.

    >>> from mlsys import ops
    >>> round(ops.matmul(m=8192, n=128, k=8192, dtype="fp16").intensity, 1)
    <Quantity(124.1, 'flop / byte')>
    """
    return _product("matmul", 1, positive_int("m", m), positive_int("n", n), positive_int("k", k), dtype)


def batched_matmul(*, batch: int, m: int, n: int, k: int, dtype: str = "fp16") -> Op:
    """`batch` independent products of m x k by k x n matrices, no matrix shared between them.

    Formula: FLOPs = 2 batch m n k; bytes = batch times those of `matmul`.

    Args:
        batch: number of products.
        m: rows of A and C.
        n: columns of B and C.
        k: columns of A, rows of B.
        dtype: format of all matrices.

    Raises:
        InvalidValue: if a size is not a positive integer.
        UnknownName: if the dtype is unknown.

    >>> batched_matmul(batch=3, m=4, k=5, n=6).flops
    <Quantity(720, 'flop')>
    """
    batch, m, n, k = (positive_int(*size) for size in (("batch", batch), ("m", m), ("n", n), ("k", k)))
    return _product("batched_matmul", batch, m, n, k, dtype)


def linear(*, batch: int, d_in: int, d_out: int, bias: bool = False, dtype: str = "fp16") -> Op:
    """A dense layer, Y = X W + b, with X of batch x d_in and weights W of d_in x d_out.

    Formula: as `matmul` with m = batch, n = d_out, k = d_in; a bias adds d_out parameters to read and no FLOPs, for
    it is the accumulators' starting value.

    Args:
        batch: rows of X: samples, or tokens of all sequences.
        d_in: features in.
        d_out: features out.
        bias: whether there is a bias.
        dtype: format of activations and weights.

    Raises:
        InvalidValue: if a size is not a positive integer.
        UnknownName: if the dtype is unknown.

    >>> layer = linear(batch=32, d_in=2048, d_out=2048, dtype="fp16")
    >>> layer.flops.to("MFLOP"), round(layer.intensity, 1), layer.params
    (<Quantity(268.435456, 'megaflop')>, <Quantity(31.0, 'flop / byte')>, 4194304)
    """
    batch, d_in, d_out = (positive_int(*size) for size in (("batch", batch), ("d_in", d_in), ("d_out", d_out)))
    product = _product("linear", 1, batch, d_out, d_in, dtype)
    bias_params = d_out if bias else 0
    params = d_in * d_out + bias_params
    size = bytes_per_element(dtype)
    read = product.read_count + size * bias_params
    return replace(product, read_count=read, params=params, resident_count=size * params)


def _product(kind: str, batch: int, m: int, n: int, k: int, dtype: str) -> Op:
    size = bytes_per_element(dtype)
    return Op(
        name=kind,
        kind=kind,
        engine="tensor",
        dtype=dtype,
        flop_count=2 * batch * m * n * k,
        read_count=size * batch * (m * k + k * n),
        write_count=size * batch * m * n,
    )
