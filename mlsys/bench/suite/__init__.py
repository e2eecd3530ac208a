"""The suite "book": what the chapters show as measured, on the GPU at hand.

| name | variants | shape |
|---|---|---|
| independent roofs | stream triad, mma chain (by format), fma chain fp32 | elements; m, n, k; chains, steps |
| copy bandwidth | read, copy, add, fill | bytes moved |
| working set | copy | bytes of source and target |
| stride | stride 1 to 32 | elements read, stride |
| host link | pinned and pageable, to device and to host; pinned both ways | bytes moved, in all |
| host add | torch, on the CPU | elements |
| vector add | torch | elements |
| matmul by dtype | vendor library | m, n, k |
| 2:4 sparse matmul | the library that torch chose, queued and from a graph | m, n, k |
| dense layer by batch | vendor library | batch, inputs, outputs |
| ResNet-50 | queued from Python, graph | images, channels, height, width |
| convolution | NCHW, NHWC | images, channels, height, width |
| layout change | copy, to NHWC, to NCHW | images, channels, height, width |
| softmax, layernorm | torch | rows, columns |
| embedding | torch | bags, rows per bag, elements of a row |
| launch latency | back to back, graph, launch and wait, empty Triton kernel | elements |
"""

from collections.abc import Callable, Iterator, Mapping

from mlsys.bench.suite import launch, layouts, matrix, memory, network, roofs, rowwise
from mlsys.bench.suite.setting import Setting, Sizes
from mlsys.measure.records import Row

__all__ = ["MEASUREMENTS", "Setting", "Sizes"]

MEASUREMENTS: Mapping[str, Callable[[Setting], Iterator[Row]]] = {
    "independent roofs": roofs.independent_roofs,
    "copy bandwidth": memory.copy_bandwidth,
    "working set": memory.working_set,
    "stride": memory.stride,
    "host link": memory.host_link,
    "host add": memory.host_add,
    "vector add": memory.vector_add,
    "matmul by dtype": matrix.matmul_by_dtype,
    "2:4 sparse matmul": matrix.sparse_matmul,
    "dense layer by batch": matrix.dense_layer_by_batch,
    "ResNet-50": network.resnet50,
    "convolution": layouts.convolution,
    "layout change": layouts.layout_change,
    "softmax": rowwise.softmax,
    "layernorm": rowwise.layernorm,
    "embedding": rowwise.embedding,
    "launch latency": launch.launch_latency,
    "2:4 sparse matmul, graph": matrix.sparse_matmul_in_graph,
}
