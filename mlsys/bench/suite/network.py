"""A whole network, ResNet-50: what a forward pass takes, beside the sum of what its layers must take."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch.nn import functional

from mlsys.bench.suite.setting import Setting
from mlsys.measure.gpu_ceilings import PRECISIONS
from mlsys.measure.records import Row
from mlsys.models.convolutional import build_resnet50
from mlsys.models.images import ImageNetwork
from mlsys.models.model import MULTIPLY_ADD_KINDS
from mlsys.ops.window import Pair

NAME = "ResNet-50"


@dataclass
class Way:
    """The images on their way through a network, and those that a shortcut keeps.

    Attributes:
        x: what the last layer wrote.
        fork: what the shortcut starts from; None before the first fork.
        other: what the next sum adds to x.
    """

    x: torch.Tensor
    fork: torch.Tensor | None = None
    other: torch.Tensor | None = None


class TorchNetwork(ImageNetwork):
    """A network that torch can run, with random weights, built by the calls that count its ops.

    Images and weights are in the channels-last layout, which convolutions on tensor cores need. Each normalization is
    folded into the weights and the bias of the convolution before it, as is usual for inference. ReLU, sum and pooling
    are torch's own kernels. So `ops` has no normalizations, and its convolutions have a bias.
    """

    def __init__(self, *, n: int, c: int, h: int, w: int, dtype: str, device: str) -> None:
        super().__init__(n=n, c=c, h=h, w=w, dtype=dtype)
        self.torch_dtype, self.device = PRECISIONS[dtype], device
        self.convolutions: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.classifier: tuple[torch.Tensor, torch.Tensor] | None = None
        self._steps: list[Callable[[Way], None]] = []

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        """Run a forward pass: images (n, c, h, w) to scores (n, classes)."""
        way = Way(images)
        for step in self._steps:
            step(way)
        return way.x

    def conv(
        self, name: str, c_out: int, kernel: Pair, *, stride: int = 1, padding: Pair = 0, bias: bool = False
    ) -> None:
        """A convolution with a bias, whatever `bias` says: it holds the normalization that follows."""
        sides = (kernel, kernel) if isinstance(kernel, int) else kernel
        fan_in = self.c * sides[0] * sides[1]
        weight = self._normal(c_out, self.c, *sides, scale=(2 / fan_in) ** 0.5).to(memory_format=torch.channels_last)
        shift = self._normal(c_out, scale=0.1)
        self.convolutions.append((weight, shift))

        def step(way: Way) -> None:
            way.x = functional.conv2d(way.x, weight, shift, stride, padding)

        super().conv(name, c_out, kernel, stride=stride, padding=padding, bias=True)
        self._steps.append(step)

    def fork(self) -> tuple[int, int, int]:
        """See `ImageNetwork`; a shortcut without layers of its own adds the images of the fork."""

        def step(way: Way) -> None:
            way.fork = way.other = way.x

        self._steps.append(step)
        return super().fork()

    def go_back(self, fork: tuple[int, int, int]) -> None:
        """See `ImageNetwork`."""

        def step(way: Way) -> None:
            assert way.fork is not None
            way.x, way.other = way.fork, way.x

        super().go_back(fork)
        self._steps.append(step)

    def batchnorm(self, name: str) -> None:
        """Nothing: the convolution before it does this work."""

    def relu(self, name: str, *, bounded: bool = False) -> None:
        """ReLU in place, or ReLU6 if bounded."""

        def step(way: Way) -> None:
            way.x = functional.hardtanh_(way.x, 0, 6) if bounded else way.x.relu_()

        super().relu(name, bounded=bounded)
        self._steps.append(step)

    def add(self, name: str) -> None:
        """The sum with the shortcut, in place."""

        def step(way: Way) -> None:
            assert way.other is not None
            way.x = way.x.add_(way.other)

        super().add(name)
        self._steps.append(step)

    def pool(self, name: str, kernel: Pair, *, stride: int | None = None, padding: int = 0) -> None:
        """Maximum pooling."""
        window = kernel if isinstance(kernel, int) else tuple(kernel)

        def step(way: Way) -> None:
            way.x = functional.max_pool2d(way.x, window, stride, padding)

        super().pool(name, kernel, stride=stride, padding=padding)
        self._steps.append(step)

    def classify(self, classes: int) -> None:
        """Global average pooling and a linear layer."""
        weight, shift = self._normal(classes, self.c, scale=self.c**-0.5), self._normal(classes, scale=0.1)
        self.classifier = weight, shift

        def step(way: Way) -> None:
            way.x = functional.linear(way.x.mean((2, 3)), weight, shift)

        super().classify(classes)
        self._steps.append(step)

    def _normal(self, *shape: int, scale: float) -> torch.Tensor:
        """Draw weights of a size that neither grows nor vanishes from layer to layer."""
        return (scale * torch.randn(shape, device=self.device)).to(self.torch_dtype)


def resnet50(setting: Setting) -> Iterator[Row]:
    """Time a forward pass of ResNet-50: queued layer by layer from Python, and replayed from a graph.

    Its FLOPs are those of convolutions and the last layer; the library tries its algorithms before it is timed.
    """
    dtype, side = "fp16", setting.sizes.image_side
    ceiling = setting.ceilings.product_roof(dtype).m_as("TFLOP/s")
    for batch in setting.sizes.images:
        net = TorchNetwork(n=batch, c=3, h=side, w=side, dtype=dtype, device=setting.device)
        build_resnet50(net)
        images = setting.randn(batch, 3, side, side, dtype=torch.float16).to(memory_format=torch.channels_last)
        flops = sum(op.flop_count for op in net.ops if op.kind in MULTIPLY_ADD_KINDS)
        how = {"call": partial(net, images), "work": flops / 1e12, "ceiling": ceiling, "rate_unit": "TFLOP/s"}
        for variant, graph in (("queued from Python", False), ("graph", True)):
            with torch.no_grad(), torch.backends.cudnn.flags(enabled=True, benchmark=True):
                if not bool(torch.isfinite(net(images)).all()):
                    raise ArithmeticError(f"{NAME} on {batch} images overflows {dtype}: its rate would mean nothing")
                row = setting.row(NAME, variant, (batch, 3, side, side), dtype, graph=graph, **how)
            yield row
