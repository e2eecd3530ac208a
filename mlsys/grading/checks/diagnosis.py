"""Diagnosis: name the usual cause of an error by where the wrong elements are and how they are wrong.

A diagnosis never uses the right values, so that a hidden test can give it too.
"""

from typing import TYPE_CHECKING

from mlsys.grading.checks.tolerances import Difference, dtype_name, errors_and_tolerance, is_close, rms_of

if TYPE_CHECKING:
    import torch

_MAX_ROUNDING_RMS = 0.2
"""Largest root mean square error, relative to the result's, that missing digits explain; above, indices are wrong."""
_MAX_FEW_ERRORS = 0.05
"""Largest error of one element that missing digits explain where most are right, relative to the result's RMS."""
_MAX_FITTED_ROWS = 100
"""Most rows to which a line is fitted: all together may be too large to copy."""
_MIN_FITTED_COLUMNS = 4
"""Least columns for fitting a line, which fits any two numbers, or a factor by row and column."""
_FITTING_TURNS = 20
"""How often factors of rows and of columns are fitted in turns."""


def likely_cause(
    actual: "torch.Tensor",
    expected: "torch.Tensor",
    found: Difference,
    tile: tuple[int, int] | None,
) -> str:
    """Return the first of the usual causes that fits; "" if none does.

    Args:
        actual: the result, of the shape and dtype of `expected`.
        expected: the reference.
        found: how they differ; at least one element is wrong.
        tile: rows and columns of one program's tile.
    """
    wrong = found.wrong
    missing = actual.isnan() & ~expected.isnan()
    matrix = actual.dim() == 2
    if bool(missing.all()):
        return (
            "every element is NaN. Either nothing was written (check the grid and the store), or every program also "
            "loads from outside its inputs (check the addresses and the masks, also in the dimension that is summed "
            "over), or a step subtracted infinity from infinity, or multiplied by 0 what must not be read: 0 times NaN "
            "is NaN."
        )
    if bool(missing.any()) and bool((wrong == missing).all()):
        return (
            "these elements are NaN: never written (does every tile have a program, and every program its own "
            f"tile?), or computed from loads outside the input ({_missing_masks(missing, tile)})."
        )
    if matrix and actual.shape[0] == actual.shape[1] and is_close(actual, expected.T):
        return "this is the transpose of the right result: two strides or two indices are swapped in the store."
    if matrix and tile is not None and _only_in_edge_tiles(wrong, tile):
        return "only tiles at the edge are wrong: a mask of a load or of the store is missing or tests the wrong size."
    if matrix and tile is not None and min(actual.shape) > 0 and not bool(wrong[: tile[0], : tile[1]].any()):
        return "the first tile is right and others are not: check how a tile's rows and columns follow from its number."
    if bool((~wrong | (actual == 0)).all()):
        return (
            "the wrong elements are zero: nothing was added there (check the bounds of the loop and the masks), or a "
            "maximum of negative numbers began at 0 instead of minus infinity."
        )
    if bool((~wrong | actual.isinf()).all()):
        return (
            f"the wrong elements are infinite: a step overflowed {dtype_name(actual)}. Compute in float32, and "
            "subtract the maximum before tl.exp."
        )
    if matrix and actual.is_floating_point() and _is_line_by_row(actual, expected, wrong.any(dim=1)):
        return (
            "each wrong row is right except for one factor and one offset: its maximum, its sum or its scale is off. "
            "Are elements past the end of the row included? Give the load an `other=` that changes nothing: 0 for a "
            "sum, minus infinity for a maximum. If a row is processed in several blocks, is the sum rescaled when the "
            "maximum grows?"
        )
    if matrix and actual.is_floating_point() and _is_scaled_by_row_and_column(actual, expected):
        return (
            "each element is right except for a factor of its row and a factor of its column. Is a scale missing, or "
            "are those of rows and of columns exchanged?"
        )
    if found.relative_rms < _MAX_ROUNDING_RMS and not _are_few_and_large(found, expected):
        return (
            "the errors are small. Either digits are lost: keep running sums in float32 for every input dtype (of "
            '8-bit integers, in int32), pass input_precision="ieee" to tl.dot (the default, tf32, keeps 10 bits), and '
            "subtract what large numbers have in common, such as their mean, before you square or add them. Or "
            "something is left out, counted twice or taken from elsewhere: lanes past the end, an ignored stride, "
            "padding in a mean or a variance, the share of a block, a bias."
        )
    if matrix:
        return (
            "large errors: are rows and columns, or two strides of an input or of the output, swapped? In a loop, does "
            "each pointer move by one tile in each step? Do elements past the end add nothing to a sum, even after "
            "something was subtracted from them? Is each value unpacked, converted and scaled as the question says?"
        )
    return ""


def _missing_masks(missing: "torch.Tensor", tile: tuple[int, int] | None) -> str:
    if tile is not None and missing.dim() == 2 and _only_in_edge_tiles(missing, tile):
        return "only at the edge: check the masks of the rows, of the columns and of the dimension that is summed over"
    return "check every mask, also in the dimension that is summed over, and every stride"


def _only_in_edge_tiles(wrong: "torch.Tensor", tile: tuple[int, int]) -> bool:
    """Return whether all wrong elements are in tiles that are cut off by the edge, and some other tile exists."""
    rows, cols = (size - size % step for size, step in zip(wrong.shape, tile, strict=True))
    return rows > 0 and cols > 0 and (rows, cols) != tuple(wrong.shape) and not bool(wrong[:rows, :cols].any())


def _are_few_and_large(found: Difference, expected: "torch.Tensor") -> bool:
    """Return whether most elements are right and some are off by more than rounding can make them."""
    if found.largest is None or bool(found.wrong.sum() * 2 > found.wrong.numel()):
        return False
    return found.largest > _MAX_FEW_ERRORS * rms_of(expected)


def _is_scaled_by_row_and_column(actual: "torch.Tensor", expected: "torch.Tensor") -> bool:
    """Return whether `actual[i, j] = row[i] x column[j] x expected[i, j]`, within the tolerance, in the first rows.

    Both factors are fitted in turns, each by least squares; all must be positive.
    """
    import torch

    expected, actual = expected[:_MAX_FITTED_ROWS], actual[:_MAX_FITTED_ROWS]
    x, y = expected.double(), actual.double()
    if min(x.shape) < _MIN_FITTED_COLUMNS or not bool((x.isfinite() & y.isfinite()).all()):
        return False
    row, column = x.new_ones(x.shape[0], 1), x.new_ones(1, x.shape[1])
    for _ in range(_FITTING_TURNS):
        row = (y * x * column).sum(dim=1, keepdim=True) / (x * column).square().sum(dim=1, keepdim=True)
        column = (y * x * row).sum(dim=0, keepdim=True) / (x * row).square().sum(dim=0, keepdim=True)
    factors = row * column
    _, allowed = errors_and_tolerance(actual, expected)
    close = (y - factors * x).abs() <= allowed * torch.clamp(factors, min=1)
    return bool(close.all()) and bool((factors > 0).all())


def _is_line_by_row(actual: "torch.Tensor", expected: "torch.Tensor", rows: "torch.Tensor") -> bool:
    """Return whether `actual = factor x expected + offset`, within the tolerance, in the first of these rows.

    A result that is too large by a factor has errors that are too large by it, too.
    """
    some = rows.nonzero().flatten()[:_MAX_FITTED_ROWS]
    expected, actual = expected[some], actual[some]
    x, y = expected.double(), actual.double()
    if x.shape[1] < _MIN_FITTED_COLUMNS or not bool((x.isfinite() & y.isfinite()).all()):
        return False
    spread = x - x.mean(dim=1, keepdim=True)
    variance = spread.square().sum(dim=1, keepdim=True)
    if not bool((variance > 0).all()):
        return False  # a constant row is on any line
    factor = (spread * y).sum(dim=1, keepdim=True) / variance
    fitted = y.mean(dim=1, keepdim=True) + factor * spread
    _, allowed = errors_and_tolerance(actual, expected)
    return bool(((y - fitted).abs() <= allowed * factor.clamp(min=1)).all()) and bool((factor > 0).all())
