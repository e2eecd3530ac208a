"""Winograd's convolution: fewer multiplications per tile, paid for with sums, bytes and digits.

F(m, r) makes m neighboring results of a filter with r taps from a piece of m + r - 1 inputs with as many
multiplications, where the definition takes m r. In two dimensions both counts are squared.

Sources: Winograd, Arithmetic Complexity of Computations, SIAM (1980); Lavin and Gray, Fast Algorithms for Convolutional
Neural Networks, CVPR 2016 (arXiv:1509.09308).
"""

from fractions import Fraction

from mlsys.core.arguments import positive_int
from mlsys.core.dtypes import bytes_per_element
from mlsys.errors import InvalidValue
from mlsys.ops.op import Op
from mlsys.ops.window import all_positive, conv_output_size

POINTS = tuple(Fraction(point) for point in ("0", "1", "-1", "2", "-2", "1/2", "-1/2"))
"""Where the polynomials are evaluated, in the order in which they are taken; infinity is always the last point."""

Matrix = list[list[Fraction]]


def winograd_matrices(outputs: int, taps: int = 3) -> tuple[Matrix, Matrix, Matrix]:
    """The transforms of F(m, r): results, filters and inputs, as exact fractions.

    Formula: y = A [(G g) * (B d)], with * element by element, gives y_i = sum over j of d_(i + j) g_j. In two
    dimensions y = A [(G g G^T) * (B d B^T)] A^T.

    Each of the m + r - 1 products is the product of two polynomials at one point. G evaluates the filter there, A
    evaluates at the results' powers, and B interpolates: transposed, because a correlation is the transpose of a
    product of polynomials.

    Args:
        outputs: m, results of a tile along one direction.
        taps: r, taps of the filter along one direction.

    Returns:
        A (m x t), G (t x r) and B (t x t), where t = m + r - 1.

    Raises:
        InvalidValue: if a size is not a positive integer, or t needs more points than there are.

    >>> A, G, B = winograd_matrices(2)
    >>> [[str(number) for number in row] for row in G]
    [['-1', '0', '0'], ['1/2', '1/2', '1/2'], ['1/2', '-1/2', '1/2'], ['0', '0', '1']]
    """
    outputs, taps = all_positive(outputs=outputs, taps=taps)
    tile = outputs + taps - 1
    if tile - 1 > len(POINTS):
        raise InvalidValue(
            f"F({outputs}, {taps}) evaluates at {tile - 1} finite points, and there are {len(POINTS)}: larger tiles "
            f"lose too many digits; use at most {len(POINTS) + 2 - taps} outputs for {taps} taps"
        )
    points = POINTS[: tile - 1]
    results = [[point**power for point in points] + [Fraction(power == outputs - 1)] for power in range(outputs)]
    filters, inputs = [], []
    for point in points:
        others = [other for other in points if other != point]
        scale = _at(others, point)
        filters.append([point**power / scale for power in range(taps)])
        inputs.append(_polynomial(others, tile))
    filters.append([Fraction(power == taps - 1) for power in range(taps)])
    inputs.append(_polynomial(list(points), tile))
    return results, filters, inputs


def winograd(
    *, n: int, c_in: int, h: int, w: int, c_out: int, outputs: int, taps: int = 3, padding: int = 0, dtype: str = "fp16"
) -> tuple[Op, Op, Op]:
    """Winograd's convolution as three kernels: transform the inputs, multiply, transform the results.

    The filters are transformed beforehand. Every number that one kernel hands to the next crosses the memory interface
    in `dtype`: transformed inputs, t^2 c_in per tile, and products, t^2 c_out per tile.

    Formula: tiles = n ceil(h_out / m) ceil(w_out / m); the products are t^2 matrix products of
    tiles x c_in x c_out. A transform is counted as two matrix products per tile and channel, zeros included.

    Args:
        n: images.
        c_in: channels of an image.
        h: height of an image.
        w: width of an image.
        c_out: filters, and channels of the result.
        outputs: m, results of a tile along one direction.
        taps: r, taps of the filter along one direction; the stride is 1.
        padding: rows or columns of zeros added on each side.
        dtype: format of images, filters and what crosses between the kernels.

    Returns:
        The ops "inputs", "products" and "results", in their order.

    Raises:
        InvalidValue: as `winograd_matrices`, or if the filter is larger than the padded image.
        UnknownName: if the dtype is unknown.

    >>> layer = dict(n=32, c_in=128, h=56, w=56, c_out=256, padding=1)
    >>> inputs, products, results = winograd(**layer, outputs=4)
    >>> round(products.flops.to("GFLOP"), 1), round(products.intensity)
    (<Quantity(14.8, 'gigaflop')>, <Quantity(84, 'flop / byte')>)
    """
    n, c_in, h, w, c_out = all_positive(n=n, c_in=c_in, h=h, w=w, c_out=c_out)
    winograd_matrices(outputs, taps)
    outputs, taps = positive_int("outputs", outputs), positive_int("taps", taps)
    rows, cols = (conv_output_size(side, taps, padding=padding) for side in (h, w))
    tile = outputs + taps - 1
    tiles = n * -(-rows // outputs) * -(-cols // outputs)
    size = bytes_per_element(dtype)
    pieces, products = (size * tiles * tile**2 * channels for channels in (c_in, c_out))
    weights = c_out * c_in * tile**2
    return (
        Op("inputs", "winograd", "vector", dtype, 4 * tiles * c_in * tile**3, size * n * c_in * h * w, pieces),
        Op(
            "products",
            "winograd",
            "tensor",
            dtype,
            2 * tiles * tile**2 * c_in * c_out,
            pieces + size * weights,
            products,
            params=weights,
            resident_count=size * weights,
        ),
        Op(
            "results",
            "winograd",
            "vector",
            dtype,
            2 * tiles * c_out * outputs * tile * (tile + outputs),
            products,
            size * n * c_out * rows * cols,
        ),
    )


def _at(zeros: list[Fraction], point: Fraction) -> Fraction:
    """The polynomial with these zeros at a point."""
    value = Fraction(1)
    for zero in zeros:
        value *= point - zero
    return value


def _polynomial(zeros: list[Fraction], size: int) -> list[Fraction]:
    """The coefficients of the polynomial with these zeros, lowest power first, filled up with zeros to a size."""
    coefficients = [Fraction(1)]
    for zero in zeros:
        shifted, scaled = [Fraction(0), *coefficients], [*coefficients, Fraction(0)]
        coefficients = [one - zero * other for one, other in zip(shifted, scaled, strict=True)]
    return coefficients + [Fraction(0)] * (size - len(coefficients))
