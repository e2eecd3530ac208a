import csv
import random
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pint
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from mlsys import ops
from mlsys.core.dtypes import BITS, bytes_per_element
from mlsys.errors import InvalidValue, UnknownName
from mlsys.ops import Op
from mlsys.units import ureg

GOLDEN = Path(__file__).parent / "golden"
TORCH_DTYPES = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp8": torch.float8_e4m3fn,
    "int8": torch.int8,
}
sizes = st.integers(1, 40)


def golden_rows(name: str) -> list[dict[str, str]]:
    with (GOLDEN / name).open(newline="") as file:
        return list(csv.DictReader(file))


def golden_intensity(quantity: str) -> float:
    return float(next(row["value"] for row in golden_rows("transformer.csv") if row["quantity"] == quantity))


def intensity(op: Op) -> float:
    return float(op.intensity.m_as("flop/byte"))


def meta(*shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    return torch.empty(*shape, dtype=dtype, device="meta")


def torch_flops(function: Any, *tensors: torch.Tensor, **arguments: Any) -> tuple[int, torch.Tensor]:
    with FlopCounterMode(display=False) as counter:
        result = function(*tensors, **arguments)
    return counter.get_total_flops(), result


def nbytes(*tensors: torch.Tensor) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


@pytest.mark.parametrize("row", [r for r in golden_rows("flops.csv") if r["convention"] == "2 per MAC"], ids=str)
def test_flops_of_one_op_match_golden(row: dict[str, str]) -> None:
    given_sizes = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)(?!\d*x)", row["arguments"])}
    if row["op"] == "bmm":
        given_sizes["batch"] = given_sizes.pop("b")
        op = ops.batched_matmul(**given_sizes)
    elif row["op"] == "conv2d":
        assert "kernel=4x4" in row["arguments"]
        op = ops.conv2d(**{**given_sizes, "kernel": (4, 4)})
    elif row["op"] == "attention":
        b, h, s, d = (given_sizes[key] for key in "bhsd")
        op = ops.attention(batch=b, heads=h, seq=s, head_dim=d)
    else:
        op = getattr(ops, row["op"])(**given_sizes)
    assert op.flops.m_as("flop") == int(row["flops"])


def test_flops_of_lenet_match_golden() -> None:
    """fvcore's example: 3x3 convolutions on a 32 x 32 image, pooling by 2, then three linear layers."""
    convolutions = [
        ops.conv2d(n=1, c_in=1, h=32, w=32, c_out=6, kernel=3),
        ops.conv2d(n=1, c_in=6, h=15, w=15, c_out=16, kernel=3),
    ]
    linears = [ops.linear(batch=1, d_in=i, d_out=o, bias=True) for i, o in ((16 * 6 * 6, 120), (120, 84), (84, 10))]
    rows = {row["arguments"].split()[0]: int(row["flops"]) for row in golden_rows("flops.csv") if row["op"] == "lenet"}
    assert sum(op.flops for op in convolutions).m_as("MAC") == rows["conv"]
    assert sum(op.flops for op in linears).m_as("MAC") == rows["linear"]


@pytest.mark.parametrize(
    ("quantity", "op"),
    [
        ("8192x128x8192 fp16 matmul", ops.matmul(m=8192, n=128, k=8192, dtype="fp16")),
        ("dense 2048x2048 batch 256 fp16", ops.linear(batch=256, d_in=2048, d_out=2048, dtype="fp16")),
        ("BERT-base-like layer QKV projection", ops.linear(batch=32 * 512, d_in=768, d_out=3 * 768, dtype="fp16")),
    ],
)
def test_intensity_matches_golden(quantity: str, op: Op) -> None:
    expected = golden_intensity(quantity)
    assert intensity(op) == pytest.approx(expected, abs=0.5 if expected > 200 else 0.05)


@given(m=sizes, n=sizes, k=sizes, dtype=st.sampled_from(sorted(TORCH_DTYPES)))
def test_matmul_agrees_with_torch(m: int, n: int, k: int, dtype: str) -> None:
    a, b = meta(m, k), meta(k, n)
    flops, c = torch_flops(torch.matmul, a, b)
    op = ops.matmul(m=m, n=n, k=k, dtype=dtype)
    scale = torch.empty(0, dtype=TORCH_DTYPES[dtype]).element_size() / 2
    assert op.flops.m_as("flop") == flops
    assert op.bytes_read.m_as("byte") == nbytes(a, b) * scale
    assert op.bytes_written.m_as("byte") == nbytes(c) * scale


@given(
    n=st.integers(1, 3),
    c_in=st.integers(1, 4),
    c_out=st.integers(1, 4),
    h=st.integers(1, 20),
    w=st.integers(1, 20),
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    padding=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    dilation=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    groups=st.integers(1, 4),
    bias=st.booleans(),
)
def test_conv2d_agrees_with_torch(
    n: int,
    c_in: int,
    c_out: int,
    h: int,
    w: int,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    groups: int,
    bias: bool,
) -> None:
    assume(all(s + 2 * p > d * (k - 1) for s, k, p, d in zip((h, w), kernel, padding, dilation, strict=True)))
    c_in, c_out = c_in * groups, c_out * groups
    layer = torch.nn.Conv2d(
        c_in, c_out, kernel, stride, padding, dilation, groups, bias, device="meta", dtype=torch.float16
    )
    image = meta(n, c_in, h, w)
    flops, result = torch_flops(layer, image)
    op = ops.conv2d(
        n=n,
        c_in=c_in,
        h=h,
        w=w,
        c_out=c_out,
        kernel=kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        bias=bias,
    )
    assert op.flops.m_as("flop") == flops
    assert op.params == sum(p.numel() for p in layer.parameters())
    assert op.bytes_read.m_as("byte") == nbytes(image, *layer.parameters())
    assert op.bytes_written.m_as("byte") == nbytes(result)


@given(n=sizes, channels=sizes, side=st.integers(3, 30), stride=st.integers(1, 3))
def test_depthwise_is_a_convolution_with_a_group_per_channel(n: int, channels: int, side: int, stride: int) -> None:
    depthwise = ops.depthwise_conv2d(n=n, channels=channels, h=side, w=side, kernel=3, stride=stride, padding=1)
    layer = torch.nn.Conv2d(
        channels, channels, 3, stride, 1, groups=channels, bias=False, device="meta", dtype=torch.float16
    )
    flops, result = torch_flops(layer, meta(n, channels, side, side))
    assert depthwise.flops.m_as("flop") == flops
    assert depthwise.bytes_written.m_as("byte") == nbytes(result)
    assert depthwise.engine == depthwise.unit == "vector"


@pytest.mark.parametrize(("groups", "engine"), [(1, "tensor"), (4, "tensor"), (8, "vector")])
def test_only_a_convolution_that_sums_over_channels_uses_the_matrix_unit(groups: int, engine: str) -> None:
    assert ops.conv2d(n=1, c_in=8, h=4, w=4, c_out=16, kernel=3, groups=groups).engine == engine


@given(n=sizes, c_in=st.integers(2, 40), c_out=sizes, side=sizes)
def test_one_by_one_convolution_is_a_matmul(n: int, c_in: int, c_out: int, side: int) -> None:
    convolution = ops.conv2d(n=n, c_in=c_in, h=side, w=side, c_out=c_out, kernel=1)
    product = ops.matmul(m=n * side * side, n=c_out, k=c_in)
    assert (convolution.flops, convolution.bytes, convolution.engine) == (product.flops, product.bytes, product.engine)


def test_im2col_then_matmul_moves_what_the_copy_adds() -> None:
    layer = {"n": 32, "c_in": 128, "h": 56, "w": 56, "kernel": 3, "padding": 1}
    copy = ops.im2col(**layer)
    product = ops.matmul(m=100_352, n=256, k=1_152)
    implicit = ops.conv2d(**layer, c_out=256)
    assert copy.bytes.m_as("MB") == pytest.approx(257, abs=0.5)
    assert product.bytes.m_as("MB") == pytest.approx(283, abs=0.5)
    assert product.flops == implicit.flops
    assert copy.bytes + product.bytes == implicit.bytes + 2 * copy.bytes_written
    unfolded = torch.nn.functional.unfold(meta(32, 128, 56, 56), 3, padding=1)
    assert copy.bytes_written.m_as("byte") == nbytes(unfolded)


@pytest.mark.parametrize(("outputs", "taps"), [(1, 1), (2, 3), (3, 3), (4, 3), (6, 3), (2, 5), (3, 2), (1, 4)])
def test_winograd_is_the_correlation_exactly(outputs: int, taps: int) -> None:
    results, filters, inputs = ops.winograd_matrices(outputs, taps)

    def applied(matrix: list[list[Fraction]], vector: list[Fraction]) -> list[Fraction]:
        return [sum((m * v for m, v in zip(row, vector, strict=True)), Fraction(0)) for row in matrix]

    draw = random.Random(outputs * taps)
    d = [Fraction(draw.randint(-9, 9)) for _ in range(outputs + taps - 1)]
    g = [Fraction(draw.randint(-9, 9)) for _ in range(taps)]
    products = [left * right for left, right in zip(applied(filters, g), applied(inputs, d), strict=True)]
    assert len(products) == outputs + taps - 1
    assert applied(results, products) == [sum(d[i + j] * g[j] for j in range(taps)) for i in range(outputs)]


def test_winograd_has_the_transforms_of_its_paper_up_to_signs() -> None:
    """As Lavin and Gray print them; the sign of a row is free, because it cancels between the three matrices."""
    printed = {
        2: [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]],
        4: [
            [4, 0, -5, 0, 1, 0],
            [0, -4, -4, 1, 1, 0],
            [0, 4, -4, -1, 1, 0],
            [0, -2, -1, 2, 1, 0],
            [0, 2, -1, -2, 1, 0],
            [0, 4, 0, -5, 0, 1],
        ],
    }
    for outputs, rows in printed.items():
        _, _, inputs = ops.winograd_matrices(outputs)
        for row, found in zip(rows, inputs, strict=True):
            assert row in ([int(one) for one in found], [-int(one) for one in found])


@given(side=st.integers(3, 20), c_in=sizes, c_out=sizes, n=st.integers(1, 3), outputs=st.sampled_from([2, 4, 6]))
def test_winograd_hands_whole_tiles_from_kernel_to_kernel(
    side: int, c_in: int, c_out: int, n: int, outputs: int
) -> None:
    layer = {"n": n, "c_in": c_in, "h": side, "w": side, "c_out": c_out, "padding": 1, "dtype": "fp16"}
    inputs, products, results = ops.winograd(**layer, outputs=outputs)
    direct = ops.conv2d(**layer, kernel=3)
    tile = outputs + 2
    tiles = n * len(range(0, side, outputs)) ** 2
    assert inputs.write_count == 2 * tiles * tile**2 * c_in
    assert products.read_count - inputs.write_count == direct.resident_count * tile**2 / 9
    assert results.read_count == products.write_count
    assert inputs.read_count + results.write_count == direct.read_count - direct.resident_count + direct.write_count
    saved = 9 * outputs**2 / tile**2
    assert products.flop_count * saved >= direct.flop_count
    if side % outputs == 0:
        assert products.flop_count * saved == pytest.approx(direct.flop_count)


def test_a_tile_that_needs_more_points_is_refused_with_the_largest_that_does_not() -> None:
    with pytest.raises(InvalidValue, match="use at most 6 outputs for 3 taps"):
        ops.winograd_matrices(7)


@given(
    n=sizes,
    channels=sizes,
    side=st.integers(4, 30),
    kernel=st.integers(2, 4),
    stride=st.integers(1, 3),
    padding=st.integers(0, 1),
)
def test_pooling_has_the_size_of_torch(
    n: int, channels: int, side: int, kernel: int, stride: int, padding: int
) -> None:
    pooled = torch.nn.functional.avg_pool2d(meta(n, channels, side, side), kernel, stride, padding)
    op = ops.pool2d(n=n, channels=channels, h=side, w=side, kernel=kernel, stride=stride, padding=padding)
    assert op.bytes_written.m_as("byte") == nbytes(pooled)
    assert op.flops.m_as("flop") == pooled.numel() * kernel**2


@given(
    batch=st.integers(1, 4),
    kv_heads=st.integers(1, 4),
    group=st.integers(1, 4),
    seq=sizes,
    kv_seq=sizes,
    head_dim=sizes,
)
def test_attention_is_two_batched_products(
    batch: int, kv_heads: int, group: int, seq: int, kv_seq: int, head_dim: int
) -> None:
    heads = kv_heads * group
    shape = {"batch": batch, "heads": heads, "kv_heads": kv_heads, "seq": seq, "kv_seq": kv_seq, "head_dim": head_dim}
    fused, unfused = ops.attention(**shape), ops.attention(**shape, fused=False)
    scores = ops.batched_matmul(batch=batch * heads, m=seq, n=kv_seq, k=head_dim)
    mixed = ops.batched_matmul(batch=batch * heads, m=seq, n=head_dim, k=kv_seq)
    normalized = ops.softmax(rows=batch * heads * seq, cols=kv_seq)
    assert fused.flops == unfused.flops == scores.flops + mixed.flops
    if group == 1:
        assert unfused.bytes == scores.bytes + normalized.bytes + mixed.bytes
    q, k, v = (
        meta(batch, n_heads, s, head_dim) for n_heads, s in ((heads, seq), (kv_heads, kv_seq), (kv_heads, kv_seq))
    )
    assert fused.bytes_read.m_as("byte") == nbytes(q, k, v)
    assert fused.bytes_written.m_as("byte") == nbytes(q)


@given(seq=sizes, block=sizes)
def test_smaller_query_blocks_read_keys_and_values_more_often(seq: int, block: int) -> None:
    shape = {"batch": 2, "heads": 3, "seq": seq, "head_dim": 8}
    once, blocked = ops.attention(**shape), ops.attention(**shape, query_block=block)
    passes = len(range(0, seq, block))
    assert blocked.bytes_read - once.bytes_read == (passes - 1) * 2 * once.bytes_written
    assert blocked.bytes_written == once.bytes_written


def test_attention_numbers_of_the_course() -> None:
    head = {"batch": 1, "heads": 1, "seq": 4096, "head_dim": 64}
    assert ops.attention(**head).flops.m_as("GFLOP") == pytest.approx(4.29, abs=0.01)
    naive, blocked = ops.attention(**head, fused=False), ops.attention(**head, query_block=128)
    assert naive.bytes.m_as("MB") == pytest.approx(136, abs=0.5)
    assert blocked.bytes.m_as("MB") == pytest.approx(34.6, abs=0.05)
    assert intensity(naive) == pytest.approx(31.5, abs=0.1)
    assert intensity(blocked) == pytest.approx(124, abs=0.5)
    vit = {"batch": 32, "heads": 12, "seq": 197, "head_dim": 64}
    assert intensity(ops.attention(**vit)) == pytest.approx(99, abs=0.6)
    assert intensity(ops.batched_matmul(batch=32 * 12, m=197, n=197, k=64)) == pytest.approx(39, abs=0.3)


@given(heads=st.sampled_from([1, 2, 4, 8]), group=st.sampled_from([1, 2, 4, 8]), context=st.integers(100, 5000))
def test_decode_intensity_is_the_size_of_a_head_group(heads: int, group: int, context: int) -> None:
    op = ops.attention_decode(batch=7, heads=heads * group, kv_heads=heads, context=context, head_dim=64)
    assert intensity(op) == pytest.approx(group, rel=0.1)
    assert intensity(op) < group


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (ops.elementwise(elements=2**24, inputs=2, dtype="fp32"), 1 / 12),
        (ops.elementwise(elements=10**6, dtype="fp32"), 0.125),
        (ops.softmax(rows=32 * 12 * 512, cols=512), 1.25),
        (ops.layernorm(rows=32 * 512, cols=768), 2),
        (ops.layernorm(rows=32 * 512, cols=768, flops_per_element=9), 2.25),
        (ops.depthwise_conv2d(n=32, channels=128, h=112, w=112, kernel=3, padding=1), 4.5),
        (ops.conv2d(n=32, c_in=128, h=56, w=56, c_out=256, kernel=3, padding=1), 762),
        (ops.conv2d(n=32, c_in=128, h=56, w=56, c_out=256, kernel=3), 743),
        (ops.conv2d(n=1, c_in=64, h=56, w=56, c_out=64, kernel=3, padding=1), 264),
        (ops.linear(batch=1, d_in=4096, d_out=4096), 1),
        (ops.linear(batch=32, d_in=2048, d_out=2048), 31.0),
        (ops.matmul(m=128, n=4096, k=4096), 120),
        (ops.matmul(m=2048, n=2048, k=64), 60),
        (ops.matmul(m=4096, n=4096, k=4096), 1365),
        (ops.linear(batch=32 * 197, d_in=768, d_out=3 * 768), 528),
        (ops.linear(batch=32 * 197, d_in=768, d_out=768), 362),
        (ops.linear(batch=32 * 197, d_in=768, d_out=4 * 768), 560),
        (ops.linear(batch=32 * 197, d_in=4 * 768, d_out=768), 560),
    ],
    ids=lambda value: value.kind if isinstance(value, Op) else f"{value:.3g}",
)
def test_intensities_of_the_course(op: Op, expected: float) -> None:
    assert intensity(op) == pytest.approx(expected, rel=0.005)


@pytest.mark.parametrize(
    ("op", "mflop", "megabytes"),
    [
        (ops.linear(batch=32 * 512, d_in=768, d_out=3 * 768), 58_000, 104.2),
        (ops.conv2d(n=32, c_in=128, h=56, w=56, c_out=256, kernel=3, padding=1), 59_200, 77.7),
        (ops.conv2d(n=32, c_in=128, h=56, w=56, c_out=256, kernel=3), 55_000, 74.0),
        (ops.linear(batch=32, d_in=2048, d_out=2048), 268.4, 8.65),
        (ops.softmax(rows=32 * 12 * 512, cols=512), 503.3, 402.7),
        (ops.layernorm(rows=32 * 512, cols=768), 100.7, 50.3),
        (ops.matmul(m=2048, n=2048, k=64), 537, 8.91),
        (ops.matmul(m=4096, n=4096, k=4096), 137_439, 100.7),
        (ops.linear(batch=1, d_in=4096, d_out=4096), 33.6, 33.6),
    ],
    ids=lambda value: value.kind if isinstance(value, Op) else "",
)
def test_work_and_traffic_of_the_course(op: Op, mflop: float, megabytes: float) -> None:
    assert op.flops.m_as("MFLOP") == pytest.approx(mflop, rel=0.002)
    assert op.bytes.m_as("MB") == pytest.approx(megabytes, rel=0.002)


class Steps(TorchDispatchMode):
    """Counts the elements on which each arithmetic step of torch works; a step on one number per row counts as none."""

    def __init__(self, cols: int) -> None:
        super().__init__()
        self.cols, self.elements = cols, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        matrices = [t for t in (*args, result) if isinstance(t, torch.Tensor) and t.shape[-1:] == (self.cols,)]
        self.elements += max((t.numel() for t in matrices if t.dim() == 2), default=0)
        return result


def softmax_in_steps(x: torch.Tensor) -> torch.Tensor:
    e = torch.exp(x - x.amax(1, keepdim=True))
    return e / e.sum(1, keepdim=True)


def layernorm_in_steps(x: torch.Tensor) -> torch.Tensor:
    gamma, beta = torch.full(x.shape[1:], 2.0), torch.full(x.shape[1:], 3.0)
    mean = x.sum(1, keepdim=True) / x.shape[1]
    inverse = 1 / torch.sqrt(torch.square(x - mean).sum(1, keepdim=True) / x.shape[1])
    return (x - mean) * inverse * gamma + beta


@pytest.mark.parametrize(("op_of", "in_steps"), [(ops.softmax, softmax_in_steps), (ops.layernorm, layernorm_in_steps)])
def test_flops_of_rows_are_the_steps_of_a_plain_implementation(op_of: Any, in_steps: Any) -> None:
    x = torch.randn(7, 33, dtype=torch.float64)
    with Steps(cols=33) as steps:
        in_steps(x)
    assert op_of(rows=7, cols=33).flops.m_as("flop") == steps.elements


@pytest.mark.parametrize(("dtype", "limit"), [("fp16", 0.5), ("fp32", 0.25)])
def test_embedding_sum_does_one_addition_per_element_read(dtype: str, limit: float) -> None:
    op = ops.embedding_bag(bags=4, bag_size=10_000, dim=1024, dtype=dtype)
    assert intensity(op) == pytest.approx(limit, rel=0.01)
    assert intensity(op) < limit


def test_plain_lookup_does_no_arithmetic() -> None:
    op = ops.embedding(lookups=3, dim=8, index_bytes=4, dtype="fp32")
    assert op.flops.m_as("flop") == 0
    assert (op.bytes_read.m_as("byte"), op.bytes_written.m_as("byte")) == (3 * (32 + 4), 96)


@pytest.mark.parametrize(("training", "separate_passes"), [(False, 6), (True, 7)])
def test_fusion_leaves_two_passes_or_three_with_statistics(training: bool, separate_passes: int) -> None:
    rows, channels = 2**20, 64
    elements = rows * channels
    relu = ops.elementwise(elements=elements, dtype="fp32")
    norm = ops.batchnorm(rows=rows, channels=channels, training=training, dtype="fp32")
    scale_shift = ops.elementwise(elements=elements, flops_per_element=2, dtype="fp32")
    tensor = ureg.Quantity(4 * elements, "byte")
    chain = [relu, norm, scale_shift]
    separate = sum(op.bytes for op in chain)
    assert (separate / tensor).m_as("dimensionless") == pytest.approx(separate_passes, rel=1e-4)
    fused = ops.fuse(chain)
    assert (fused.bytes / tensor).m_as("dimensionless") == pytest.approx(3 if training else 2, rel=1e-4)
    assert fused.flops == sum(op.flops for op in chain)


def test_fusing_an_epilogue_removes_its_read_and_write_only() -> None:
    product = ops.matmul(m=512, n=256, k=128)
    relu = ops.elementwise(elements=512 * 256)
    fused = ops.fuse([product, relu], name="matmul + relu")
    assert fused.bytes == product.bytes
    assert (fused.engine, fused.name) == ("tensor", "matmul + relu")


def test_fusing_ops_that_do_not_follow_each_other_is_refused() -> None:
    with pytest.raises(InvalidValue, match="reads 8 bytes, but elementwise wrote 16"):
        ops.fuse([ops.elementwise(elements=8), ops.elementwise(elements=4)])
    with pytest.raises(InvalidValue, match="at least one"):
        ops.fuse([])


@given(m=sizes, n=sizes, k=sizes, factor=st.integers(2, 5))
def test_larger_matmul_never_has_lower_intensity(m: int, n: int, k: int, factor: int) -> None:
    small, large = ops.matmul(m=m, n=n, k=k), ops.matmul(m=m * factor, n=n, k=k)
    assert intensity(large) >= intensity(small)
    assert intensity(large) < min(n, k)


@pytest.mark.parametrize("dtype", sorted(BITS))
def test_traffic_scales_with_the_size_of_an_element(dtype: str) -> None:
    op = ops.matmul(m=3, n=5, k=7, dtype=dtype)
    assert op.bytes.m_as("byte") == (21 + 35 + 15) * BITS[dtype] / 8
    if dtype in TORCH_DTYPES:
        assert bytes_per_element(dtype) == torch.empty(0, dtype=TORCH_DTYPES[dtype]).element_size()


def test_counts_carry_units_that_do_not_mix() -> None:
    op = ops.matmul(m=2, n=2, k=2)
    assert op.intensity.check("[computation] / [information]")
    with pytest.raises(pint.DimensionalityError):
        op.flops + op.bytes


@pytest.mark.parametrize("bad", [0, -3, 2.0, "4", True, None])
def test_size_that_is_no_positive_integer_is_named(bad: Any) -> None:
    with pytest.raises(InvalidValue, match=r"\bk\b"):
        ops.matmul(m=1, n=1, k=bad)
    with pytest.raises(InvalidValue, match="c_out"):
        ops.conv2d(n=1, c_in=1, h=4, w=4, c_out=bad, kernel=3)
    with pytest.raises(InvalidValue, match="cols"):
        ops.layernorm(rows=1, cols=bad)


def test_unknown_dtype_offers_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'fp16'"):
        ops.softmax(rows=1, cols=1, dtype="fp-16")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"groups": 4}, "nearest that divides both: 3"),
        ({"kernel": 9}, "smaller kernel or more padding"),
        ({"kernel": (3, 3, 3)}, "one integer or a pair"),
        ({"kernel": 3, "stride": 0}, "stride"),
        ({"kernel": 3, "padding": -1}, "padding"),
    ],
)
def test_impossible_convolution_is_explained(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        ops.conv2d(**{"n": 1, "c_in": 6, "h": 6, "w": 6, "c_out": 9, "kernel": 1, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kv_heads": 5}, "allowed: 1, 2, 3, 4, 6, 8, 12, 24"),
        ({"fused": False, "query_block": 4}, "only the fused version"),
    ],
)
def test_impossible_attention_is_explained(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        ops.attention(**{"batch": 1, "heads": 24, "seq": 8, "head_dim": 4, **arguments})
