"""Models for microcontrollers: keyword spotting and person detection, as in MLPerf Tiny."""

from collections.abc import Sequence

from mlsys.models.images import ImageNetwork
from mlsys.models.model import Model
from mlsys.models.shapes import shapes
from mlsys.ops.window import Pair


def keyword_spotting(*, batch: int = 1, dtype: str = "int8") -> Model:
    """DS-CNN: twelve spoken words from one second of audio as 49 x 10 MFCC features.

    Source: Banbury et al., MLPerf Tiny Benchmark, NeurIPS Datasets and Benchmarks 2021, after Zhang, Suda, Lai,
    Chandra, Hello Edge: Keyword Spotting on Microcontrollers, arXiv:1711.07128 (2017).

    Args:
        batch: utterances.
        dtype: number format.

    Raises:
        InvalidValue: if the batch is not a positive integer.
        UnknownName: if the dtype is unknown.

    >>> from mlsys import models
    >>> spotter = models.keyword_spotting()
    >>> spotter.params, round(spotter.flops.to("MMAC"), 2)
    (<Quantity(23756, 'param')>, <Quantity(2.66, 'megamac')>)
    """
    shape = shapes().keyword_spotting
    net = ImageNetwork(n=batch, c=1, h=shape.height, w=shape.width, dtype=dtype)
    _conv_norm_relu(net, "stem", shape.filters, shape.first_kernel, stride=2, padding=shape.first_padding)
    _separable_blocks(net, [(shape.filters, 1)] * shape.blocks)
    net.classify(shape.classes)
    return Model(f"DS-CNN keyword spotting, batch {batch}", dtype, tuple(net.ops), shape.document)


def person_detection(*, batch: int = 1, dtype: str = "int8") -> Model:
    """MobileNetV1 at a quarter of its width on images of 96 x 96: person or no person.

    Source: Banbury et al., MLPerf Tiny Benchmark, NeurIPS Datasets and Benchmarks 2021 (visual wake words), after
    Howard et al., MobileNets, arXiv:1704.04861 (2017).

    Args:
        batch: images.
        dtype: number format.

    Raises:
        InvalidValue: if the batch is not a positive integer.
        UnknownName: if the dtype is unknown.

    >>> from mlsys import models
    >>> round(models.person_detection().flops.to("MMAC"), 1)
    <Quantity(7.5, 'megamac')>
    """
    shape = shapes().person_detection
    net = ImageNetwork(n=batch, c=shape.channels, h=shape.image, w=shape.image, dtype=dtype)
    _conv_norm_relu(net, "stem", shape.stem, 3, stride=2, padding=1)
    _separable_blocks(net, shape.blocks)
    net.classify(shape.classes)
    return Model(f"MobileNetV1 0.25 person detection, batch {batch}", dtype, tuple(net.ops), shape.document)


def _separable_blocks(net: ImageNetwork, blocks: Sequence[Sequence[int]]) -> None:
    for i, (c_out, stride) in enumerate(blocks):
        net.depthwise(f"block{i}.depthwise.conv", stride=stride, bias=True)
        net.batchnorm(f"block{i}.depthwise.norm")
        net.relu(f"block{i}.depthwise.relu")
        _conv_norm_relu(net, f"block{i}.pointwise", c_out, 1)


def _conv_norm_relu(net: ImageNetwork, name: str, c_out: int, kernel: Pair, stride: int = 1, padding: Pair = 0) -> None:
    net.conv(f"{name}.conv", c_out, kernel, stride=stride, padding=padding, bias=True)
    net.batchnorm(f"{name}.norm")
    net.relu(f"{name}.relu")
