"""The link to the host: copies of growing size, and copies behind which products hide."""

from collections.abc import Callable, Iterator

import torch

from mlsys.bench.suite.setting import Setting
from mlsys.grading.checks.assertions import assert_close
from mlsys.measure.gpu_ceilings import PRECISIONS, host_copies
from mlsys.measure.records import Row


def host_link(setting: Setting) -> Iterator[Row]:
    """Time transfers of growing size between host and device, held against large ones of pinned memory.

    Both ways at once are held against the sum of the two ways: so much would cross a link of two full lanes.
    """
    ways = {way: setting.ceilings.host_link[f"pinned {way}"].m_as("GB/s") for way in ("to device", "to host")}
    for size in setting.sizes.link_bytes:
        for variant, copy in host_copies(size, setting.device).items():
            way = variant.removeprefix("pinned ").removeprefix("pageable ")
            ceiling = ways.get(way, sum(ways.values()))
            how = {"call": copy, "work": size / 1e9, "ceiling": ceiling, "rate_unit": "GB/s"}
            yield setting.row("host link", variant, (size,), "int8", **how)


def copy_overlap(setting: Setting) -> Iterator[Row]:
    """Time pieces that come from pinned memory and are each multiplied a few times: in one stream, and in two.

    In two streams a piece is on its way while the one before it is multiplied. Beside them: the copies alone and the
    products alone, of which the longer is the least that two streams can need.
    """
    if not setting.on_gpu:
        return
    pieces, side, layers = setting.sizes.pieces, setting.sizes.piece_side, setting.sizes.piece_layers
    dtype = PRECISIONS[setting.half]
    here = [torch.randn(side, side).to(dtype).pin_memory() for _ in range(pieces)]
    there = [torch.empty(side, side, dtype=dtype, device=setting.device) for _ in range(pieces)]
    weights = [side**-0.5 * setting.randn(side, side, dtype=dtype) for _ in range(layers)]
    made = [torch.empty_like(piece) for piece in there]
    ways = Overlap(here, there, weights, made)
    expected = ways.products_of(here[-1].to(setting.device))
    for variant in ("one stream", "two streams"):
        made[-1].zero_()
        ways.variants()[variant]()
        assert_close(made[-1], expected, what=f"what {variant} computed from the last piece")
    for variant, call in ways.variants().items():
        shape = (pieces, here[0].nbytes, layers)
        yield setting.row("copy overlap", variant, shape, setting.half, call=call)


class Overlap:
    """Pieces of pinned memory `here`, their places on the device `there`, and what their products `made`."""

    def __init__(
        self,
        here: list[torch.Tensor],
        there: list[torch.Tensor],
        weights: list[torch.Tensor],
        made: list[torch.Tensor],
    ) -> None:
        self.here, self.there, self.weights, self.made = here, there, weights, made
        self.side = torch.cuda.Stream()
        self.arrived = [torch.cuda.Event() for _ in here]

    def variants(self) -> dict[str, Callable[[], None]]:
        """Return the four ways to do the work, or one part of it, by name."""
        return {
            "copies": self.copies,
            "products": self.products,
            "one stream": self.one_stream,
            "two streams": self.two_streams,
        }

    def products_of(self, piece: torch.Tensor) -> torch.Tensor:
        """Multiply a piece by one weight after the other."""
        for weight in self.weights:
            piece = piece @ weight
        return piece

    def copies(self) -> None:
        """Copy all pieces to the device."""
        for source, target in zip(self.here, self.there, strict=True):
            target.copy_(source, non_blocking=True)

    def products(self) -> None:
        """Multiply all pieces that are there."""
        for piece, made in zip(self.there, self.made, strict=True):
            made.copy_(self.products_of(piece))

    def one_stream(self) -> None:
        """Copy a piece, multiply it, and only then copy the next."""
        for source, piece, made in zip(self.here, self.there, self.made, strict=True):
            piece.copy_(source, non_blocking=True)
            made.copy_(self.products_of(piece))

    def two_streams(self) -> None:
        """Copy the pieces in a stream of their own; each product waits for its piece alone."""
        current = torch.cuda.current_stream()
        self.side.wait_stream(current)
        with torch.cuda.stream(self.side):
            for source, piece, arrived in zip(self.here, self.there, self.arrived, strict=True):
                piece.copy_(source, non_blocking=True)
                arrived.record()
        for piece, made, arrived in zip(self.there, self.made, self.arrived, strict=True):
            arrived.wait()
            made.copy_(self.products_of(piece))
