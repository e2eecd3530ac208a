"""The player of windows: a filter over a small image, the matrix of all windows, and the tile that one step reads.

The script draws from the sizes alone. The tests compare what it says with `windows`, which unfolds the image, and with
`mlsys.ops`.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys import ops

SIDE, TAPS, CHANNELS = 5, 3, 4
"""Rows and columns of the image, of the filter, and the channels."""
ROWS = 8
"""Pixels of a tile."""
PADDINGS, STRIDES = (0, 2), (1, 3)
"""Least and most."""
GROUPS = (1, 2, 4)
FIRST = {"padding": 1, "stride": 1, "groups": 1}


@dataclass(frozen=True)
class Windows:
    """The matrix of all windows, for one padding and stride.

    Attributes:
        places: rows and columns of the result.
        rows: windows.
        numbers: numbers of the matrix.
        times: how many times as many as the image has.
    """

    places: int
    rows: int
    numbers: int
    times: float


def windows(padding: int, stride: int) -> Windows:
    """Count the windows of the player's image."""
    places = ops.conv_output_size(SIDE, TAPS, stride, padding)
    copy = ops.im2col(n=1, c_in=CHANNELS, h=SIDE, w=SIDE, kernel=TAPS, stride=stride, padding=padding, dtype="int8")
    return Windows(places, places**2, copy.write_count, copy.write_count / copy.read_count)


def content() -> Content:
    """The numbers and the fallback of the player of windows."""
    return Content(
        title="Windows, their matrix, and one tile of it",
        numbers={
            "side": SIDE,
            "taps": TAPS,
            "channels": CHANNELS,
            "rows": ROWS,
            "paddings": PADDINGS,
            "strides": STRIDES,
            "groups": GROUPS,
            "first": FIRST,
        },
        picture=_picture,
        alt="On the left an image of five by five pixels inside a border of zeros, with the eight pixels that one tile "
        "reads in another color. On the right the matrix of its 25 windows, 36 numbers each, with zeros where a window "
        "is over the border, and a frame around the tile: eight rows and the four channels of the first tap.",
        tables=(_table(),),
    )


def _table() -> Table:
    rows = [("padding", "stride", "result", "matrix", "times the image")]
    for padding in range(PADDINGS[0], PADDINGS[1] + 1):
        for stride in range(STRIDES[0], STRIDES[1] + 1):
            found = windows(padding, stride)
            rows.append(
                (
                    str(padding),
                    str(stride),
                    f"{found.places} × {found.places}",
                    f"{found.rows} × {TAPS**2 * CHANNELS}",
                    f"{found.times:.3g}",
                )
            )
    return Table("The matrix of windows of an image of 5 × 5 pixels with 4 channels, 3 × 3 taps", tuple(rows))


def _picture() -> Figure:
    from _figures.convolution import tile

    tile(side=SIDE, taps=TAPS, channels=CHANNELS, padding=FIRST["padding"], rows=ROWS)
    return plt.gcf()
