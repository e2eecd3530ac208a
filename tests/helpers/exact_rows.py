"""What the fusion lab's fastest kernels compute, in float64."""

import torch
from torch.nn import functional

EPSILON = 1e-5
ROW_OPS = ("softmax", "layernorm", "rmsnorm")
OPS = (*ROW_OPS, "chain", "bias_gelu")


def exact(op, x, *vectors):
    """The operation in float64."""
    x, *vectors = (tensor.double() for tensor in (x, *vectors))
    if op == "softmax":
        return torch.softmax(x, 1)
    if op == "layernorm":
        return functional.layer_norm(x, x.shape[1:], *vectors, eps=EPSILON)
    if op == "rmsnorm":
        return functional.rms_norm(x, x.shape[1:], *vectors, eps=EPSILON)
    if op == "chain":
        mean, var, gamma, beta, scale = vectors
        return ((x.relu() - mean) / (var + EPSILON).sqrt() * gamma + beta) * scale
    return functional.gelu(x + vectors[0])
