"""A builder for networks that work on images: it carries the shape from op to op."""

from dataclasses import dataclass

from mlsys import ops
from mlsys.core.arguments import positive_int
from mlsys.ops import Op
from mlsys.ops.window import Pair


@dataclass(frozen=True)
class ConvSizes:
    """Sizes of a convolution: `n` images of `c` channels and `h` x `w` pixels, `c_out` filters."""

    n: int
    c: int
    h: int
    w: int
    c_out: int
    kernel: Pair
    stride: int
    padding: Pair


class ImageNetwork:
    """Ops of a network in the making, and the shape n x c x h x w of what the last of them wrote.

    Attributes:
        ops: in order.
        conv_sizes: of its convolutions in order, without the depthwise ones.
    """

    def __init__(self, *, n: int, c: int, h: int, w: int, dtype: str) -> None:
        self.ops: list[Op] = []
        self.conv_sizes: list[ConvSizes] = []
        self.n = positive_int("batch", n)
        self.c, self.h, self.w = c, h, w
        self.dtype = dtype

    def conv(
        self, name: str, c_out: int, kernel: Pair, *, stride: int = 1, padding: Pair = 0, bias: bool = False
    ) -> None:
        """A convolution."""
        self.conv_sizes.append(ConvSizes(self.n, self.c, self.h, self.w, c_out, kernel, stride, padding))
        op = ops.conv2d(
            n=self.n,
            c_in=self.c,
            h=self.h,
            w=self.w,
            c_out=c_out,
            kernel=kernel,
            stride=stride,
            padding=padding,
            bias=bias,
            dtype=self.dtype,
        )
        self._window(op.named(name), kernel, stride, padding)
        self.c = c_out

    def depthwise(self, name: str, *, stride: int = 1, bias: bool = False) -> None:
        """A 3x3 depthwise convolution that keeps the size, up to its stride."""
        op = ops.depthwise_conv2d(
            n=self.n,
            channels=self.c,
            h=self.h,
            w=self.w,
            kernel=3,
            stride=stride,
            padding=1,
            bias=bias,
            dtype=self.dtype,
        )
        self._window(op.named(name), 3, stride, 1)

    def fork(self) -> tuple[int, int, int]:
        """The images' channels, height and width here, from where a shortcut leaves; see `go_back`."""
        return self.c, self.h, self.w

    def go_back(self, fork: tuple[int, int, int]) -> None:
        """Continue at a fork, with the shortcut's own layers, until `add` joins the two ways."""
        self.c, self.h, self.w = fork

    def batchnorm(self, name: str) -> None:
        """Batch normalization as in inference."""
        op = ops.batchnorm(rows=self.n * self.h * self.w, channels=self.c, dtype=self.dtype)
        self.ops.append(op.named(name))

    def relu(self, name: str, *, bounded: bool = False) -> None:
        """ReLU, or ReLU6 if bounded."""
        op = ops.elementwise(elements=self.elements, flops_per_element=2 if bounded else 1, dtype=self.dtype)
        self.ops.append(op.named(name))

    def add(self, name: str) -> None:
        """The sum with a shortcut of the same shape."""
        self.ops.append(ops.elementwise(elements=self.elements, inputs=2, dtype=self.dtype).named(name))

    def pool(self, name: str, kernel: Pair, *, stride: int | None = None, padding: int = 0) -> None:
        """Maximum pooling."""
        op = ops.pool2d(
            n=self.n,
            channels=self.c,
            h=self.h,
            w=self.w,
            kernel=kernel,
            stride=stride,
            padding=padding,
            dtype=self.dtype,
        )
        self._window(op.named(name), kernel, kernel if stride is None else stride, padding)

    def classify(self, classes: int) -> None:
        """Global average pooling and a linear layer."""
        side = (self.h, self.w)
        op = ops.pool2d(n=self.n, channels=self.c, h=self.h, w=self.w, kernel=side, dtype=self.dtype)
        self._window(op.named("pool"), side, side, 0)
        op = ops.linear(batch=self.n, d_in=self.c, d_out=classes, bias=True, dtype=self.dtype)
        self.ops.append(op.named("classifier"))

    @property
    def elements(self) -> int:
        """Elements of the current images."""
        return self.n * self.c * self.h * self.w

    def _window(self, op: Op, kernel: Pair, stride: Pair, padding: Pair) -> None:
        self.ops.append(op)
        self.h, self.w = (
            ops.conv_output_size(size, *(p if isinstance(p, int) else p[i] for p in (kernel, stride, padding)))
            for i, size in enumerate((self.h, self.w))
        )
