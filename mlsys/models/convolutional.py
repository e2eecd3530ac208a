"""Image classifiers: ResNet-50 and MobileNetV2."""

from mlsys.models.images import ImageNetwork
from mlsys.models.model import Model
from mlsys.models.shapes import shapes


def resnet50(*, batch: int = 1, dtype: str = "fp16") -> Model:
    """ResNet-50 on images of 224 x 224, every convolution, normalization and activation an op of its own.

    Source: He, Zhang, Ren, Sun, Deep Residual Learning, CVPR 2016, with the stride of a stage in its first 3x3
    convolution as torchvision has it (4.09 G multiply-adds; 3.8 G as in the paper).

    Args:
        batch: images.
        dtype: number format.

    Raises:
        InvalidValue: if the batch is not a positive integer.
        UnknownName: if the dtype is unknown.

    >>> from mlsys import models
    >>> resnet = models.resnet50()
    >>> resnet.params, round(resnet.flops.to("GMAC"), 2)
    (<Quantity(25557032, 'param')>, <Quantity(4.09, 'gigamac')>)
    """
    shape = shapes().resnet50
    net = ImageNetwork(n=batch, c=shape.channels, h=shape.image, w=shape.image, dtype=dtype)
    build_resnet50(net)
    return Model(f"ResNet-50, batch {batch}", dtype, tuple(net.ops), shape.document)


def build_resnet50(net: ImageNetwork) -> None:
    """Add the layers of ResNet-50, in order, to a builder that holds images of 3 channels."""
    shape = shapes().resnet50
    net.conv("stem.conv", shape.stem, 7, stride=2, padding=3)
    net.batchnorm("stem.norm")
    net.relu("stem.relu")
    net.pool("stem.pool", 3, stride=2, padding=1)
    for stage, (blocks, width) in enumerate(zip(shape.blocks, shape.widths, strict=True), start=1):
        for block in range(blocks):
            stride = 2 if stage > 1 and block == 0 else 1
            _bottleneck(net, f"layer{stage}.{block}", width, width * shape.expansion, stride)
    net.classify(shape.classes)


def mobilenet_v2(*, batch: int = 1, dtype: str = "fp16") -> Model:
    """MobileNetV2 on images of 224 x 224, every convolution, normalization and activation an op of its own.

    Source: Sandler, Howard, Zhu, Zhmoginov, Chen, MobileNetV2, CVPR 2018.

    Args:
        batch: images.
        dtype: number format.

    Raises:
        InvalidValue: if the batch is not a positive integer.
        UnknownName: if the dtype is unknown.

    >>> from mlsys import models
    >>> mobilenet = models.mobilenet_v2()
    >>> mobilenet.params, round(mobilenet.flops.to("GMAC"), 2)
    (<Quantity(3504872, 'param')>, <Quantity(0.3, 'gigamac')>)
    """
    shape = shapes().mobilenet_v2
    net = ImageNetwork(n=batch, c=shape.channels, h=shape.image, w=shape.image, dtype=dtype)
    _conv_norm_relu6(net, "stem", shape.stem, 3, stride=2)
    for stage, (expansion, c_out, repeats, first_stride) in enumerate(shape.blocks):
        for block in range(repeats):
            _inverted_residual(net, f"block{stage}.{block}", expansion, c_out, first_stride if block == 0 else 1)
    _conv_norm_relu6(net, "head", shape.head, 1)
    net.classify(shape.classes)
    return Model(f"MobileNetV2, batch {batch}", dtype, tuple(net.ops), shape.document)


def _bottleneck(net: ImageNetwork, name: str, width: int, c_out: int, stride: int) -> None:
    start = net.fork()
    for i, (channels, kernel, step) in enumerate(((width, 1, 1), (width, 3, stride), (c_out, 1, 1)), start=1):
        net.conv(f"{name}.conv{i}", channels, kernel, stride=step, padding=kernel // 2)
        net.batchnorm(f"{name}.norm{i}")
        if i < 3:
            net.relu(f"{name}.relu{i}")
    if stride != 1 or start[0] != c_out:
        net.go_back(start)
        net.conv(f"{name}.shortcut.conv", c_out, 1, stride=stride)
        net.batchnorm(f"{name}.shortcut.norm")
    net.add(f"{name}.add")
    net.relu(f"{name}.relu3")


def _inverted_residual(net: ImageNetwork, name: str, expansion: int, c_out: int, stride: int) -> None:
    c_in = net.c
    if expansion != 1:
        _conv_norm_relu6(net, f"{name}.expand", c_in * expansion, 1)
    net.depthwise(f"{name}.depthwise.conv", stride=stride)
    net.batchnorm(f"{name}.depthwise.norm")
    net.relu(f"{name}.depthwise.relu", bounded=True)
    net.conv(f"{name}.project.conv", c_out, 1)
    net.batchnorm(f"{name}.project.norm")
    if stride == 1 and c_in == c_out:
        net.add(f"{name}.add")


def _conv_norm_relu6(net: ImageNetwork, name: str, c_out: int, kernel: int, stride: int = 1) -> None:
    net.conv(f"{name}.conv", c_out, kernel, stride=stride, padding=kernel // 2)
    net.batchnorm(f"{name}.norm")
    net.relu(f"{name}.relu", bounded=True)
