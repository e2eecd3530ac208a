"""The suite "book": what the chapters show as measured, on the GPU at hand.

| name | variants | shape |
|---|---|---|
| independent roofs | stream triad, mma chain (by format), fma chain fp32 | elements; m, n, k; chains, steps |
| copy bandwidth | read, copy, add, fill | bytes moved |
| working set | copy | bytes of source and target |
| pointer chase | one thread | bytes walked, steps |
| bytes in flight | read | programs, bytes that each has under way |
| stride | stride 1 to 32 | elements read, stride |
| host link | pinned and pageable, to device and to host; pinned both ways | bytes moved, in all |
| copy overlap | copies, products, one stream, two streams | pieces, bytes of a piece, products on each |
| host add | torch, on the CPU | elements |
| vector add | torch | elements |
| special functions | exp2, rsqrt, fma | chains, steps |
| matmul by dtype | vendor library | m, n, k |
| matmul by alignment | vendor library | m, n, k |
| 2:4 sparse matmul | the library that torch chose, queued and from a graph | m, n, k |
| sparse matmul by density | dense, CSR, BSR | m, n, k, elements of the weight that are stored |
| dense layer by batch | vendor library | batch, inputs, outputs |
| ResNet-50 | queued from Python, graph | images, channels, height, width |
| GPT-2 small, GPT-2 xl | prefill and decode, queued from Python and from a graph | sequences, tokens of each |
| convolution | NCHW, NHWC | images, channels, height, width |
| layout change | copy, to NHWC, to NCHW | images, channels, height, width |
| softmax, layernorm | torch | rows, columns |
| unfused chain | ReLU, batch normalization, scale | rows, columns |
| residual norm | warps 32 to 1 | rows, columns |
| embedding | torch | bags, rows per bag, elements of a row |
| launch latency | back to back, graph, launch and wait, empty Triton kernel | elements |
"""

from collections.abc import Callable, Iterator, Mapping

from mlsys.bench.suite import decoder, latency, launch, layouts, link, matrix, memory, network, roofs, rowwise, sparse
from mlsys.bench.suite.setting import Setting, Sizes
from mlsys.measure.records import Row

__all__ = ["MEASUREMENTS", "Setting", "Sizes"]

MEASUREMENTS: Mapping[str, Callable[[Setting], Iterator[Row]]] = {
    "independent roofs": roofs.independent_roofs,
    "copy bandwidth": memory.copy_bandwidth,
    "working set": memory.working_set,
    "pointer chase": latency.pointer_chase,
    "bytes in flight": latency.bytes_in_flight,
    "stride": memory.stride,
    "host link": link.host_link,
    "copy overlap": link.copy_overlap,
    "host add": memory.host_add,
    "vector add": memory.vector_add,
    "special functions": roofs.special_functions,
    "matmul by dtype": matrix.matmul_by_dtype,
    "matmul by alignment": matrix.matmul_by_alignment,
    "2:4 sparse matmul": sparse.sparse_matmul,
    "dense layer by batch": matrix.dense_layer_by_batch,
    "ResNet-50": network.resnet50,
    "GPT-2": decoder.gpt2,
    "convolution": layouts.convolution,
    "layout change": layouts.layout_change,
    "softmax": rowwise.softmax,
    "layernorm": rowwise.layernorm,
    "unfused chain": rowwise.unfused_chain,
    "residual norm": rowwise.residual_norm,
    "embedding": rowwise.embedding,
    "launch latency": launch.launch_latency,
    "2:4 sparse matmul, graph": sparse.sparse_matmul_in_graph,
    "sparse matmul by density": sparse.matmul_by_density,
}
