"""Operations of neural networks: how many FLOPs each does and how many bytes it must move.

Every function returns an `Op`. Its FLOPs follow one rule: each addition, subtraction, multiplication, division,
comparison, exponential and square root is one operation, so a multiply-add is 2. Steps that happen once per row, and
not once per element, are left out. Traffic is ideal: each tensor crosses the memory interface once, which a kernel
approaches from above but hardly ever beats. `mlsys.ops.chain` counts what a chain of operations moves, for every way of
cutting it into kernels.

>>> from mlsys import ops
>>> op = ops.matmul(m=4096, n=4096, k=4096, dtype="fp16")
>>> op.flops.to("GFLOP"), op.bytes.to("MB")
(<Quantity(137.438953, 'gigaflop')>, <Quantity(100.663296, 'megabyte')>)
"""

from mlsys.ops.convolution import conv2d, depthwise_conv2d
from mlsys.ops.gather import embedding, embedding_bag
from mlsys.ops.matrix import batched_matmul, linear, matmul
from mlsys.ops.op import Op, fuse
from mlsys.ops.rowwise import batchnorm, layernorm, rmsnorm, softmax
from mlsys.ops.sdpa import attention, attention_decode
from mlsys.ops.vector import elementwise
from mlsys.ops.window import conv_output_size, im2col, pool2d
from mlsys.ops.winograd import winograd, winograd_matrices

__all__ = [
    "Op",
    "attention",
    "attention_decode",
    "batched_matmul",
    "batchnorm",
    "conv2d",
    "conv_output_size",
    "depthwise_conv2d",
    "elementwise",
    "embedding",
    "embedding_bag",
    "fuse",
    "im2col",
    "layernorm",
    "linear",
    "matmul",
    "pool2d",
    "rmsnorm",
    "softmax",
    "winograd",
    "winograd_matrices",
]
