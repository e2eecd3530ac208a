"""A training pass of GPT-3 as kernels with two clocks: where frequency by kernel should save, and by pass should not.

Spaan, Chen, Varbanescu, Reducing Compute Waste in LLMs through Kernel-Level DVFS (arXiv:2601.08539), report for a
training run of GPT-3 that clocks by pass save 2% of the energy without a loss, and clocks by kernel 14.6% with a
slowdown of 0.6%. Their kernels and their GPU are not modeled here, only the same question: one block of GPT-3 on a GPU
whose two clocks can be set. What is assumed stands in the constants below.
"""

from mlsys import ops
from mlsys.core.arguments import positive_amount, positive_int
from mlsys.ops import Op
from mlsys.soc.dvfs import WAITING, Kernel, Pass
from mlsys.soc.power import operating_points

WIDTH, HEADS, TOKENS = 12288, 96, 2048
"""GPT-3 with 175 billion parameters: width, heads, and tokens of a sequence (Brown et al., 2020, Table 2.1)."""
STATIC, CORES, MEMORY = 0.12, 0.50, 0.38
"""Shares of the power at the top clocks if everything is busy: assumed, near the fits of measured kernels.

`mlsys.soc.dvfs.clocked_kernels` gives shares of 0.08, 0.58 and 0.34 for a GPU with GDDR6 memory.
"""
VECTOR_SHARE = 1 / 15
"""Rate of the vector lanes relative to the matrix units: 67 to 989 TFLOP/s on an H100."""
CORE_STEP, MEMORY_STEP, LOWEST = 0.0075, 0.02, 0.4
"""Steps of the clocks, as shares of the top clock, and the lowest that can be set: assumed; 15 MHz of 2 GHz."""
SEQUENCES = 8
"""Sequences that pass through the block between two steps of the optimizer: assumed."""


def training_pass(
    peak: float,
    bandwidth: float,
    *,
    sequences: int = SEQUENCES,
    fused_attention: bool = True,
    waiting: float = WAITING,
    shares: tuple[float, float, float] = (STATIC, CORES, MEMORY),
) -> Pass:
    """Return forward pass, backward pass and optimizer of one block, each operation a kernel of its own.

    The backward pass does the work of each operation twice. The optimizer is Adam in mixed precision, which reads and
    writes 28 bytes for each parameter. Arithmetic and memory overlap fully, as in a roofline. Voltage falls with the
    core clock like that of the one mobile GPU whose table is known; the memory's voltage stays.

    Args:
        peak: FLOP per second of the matrix units that a product reaches.
        bandwidth: bytes per second that a kernel reaches.
        sequences: how many pass through the block for each step of the optimizer.
        fused_attention: one kernel for attention, instead of two products and a softmax.
        waiting: share of its power that a domain draws while it waits.
        shares: static, core and memory power, with everything busy.

    Raises:
        InvalidValue: if a rate is not positive, or there is no sequence.
    """
    positive_int("sequences", sequences)
    positive_amount("peak", peak, "flop/s")
    positive_amount("bandwidth", bandwidth, "byte/s")
    points = operating_points("apple-m4-gpu")
    static_w, core_w, memory_w = shares

    def kernel(op: Op) -> Kernel:
        rate = peak if op.engine == "tensor" else peak * VECTOR_SHARE
        moved = op.read_count + op.write_count
        return Kernel(op.name, op.flop_count / rate, moved / bandwidth, static_w, core_w, memory_w, waiting=waiting)

    steps = round((1 - LOWEST) / CORE_STEP)
    return Pass(
        (*((kernel(op), 3.0 * sequences) for op in block_ops(fused_attention)), (kernel(_optimizer()), 1.0)),
        tuple(1 - place * CORE_STEP for place in range(steps + 1)),
        tuple(1 - place * MEMORY_STEP for place in range(round((1 - LOWEST) / MEMORY_STEP) + 1)),
        core_scale=points.power_scale,
    )


def block_ops(fused_attention: bool = True) -> tuple[Op, ...]:
    """Return the operations of one block of GPT-3 on one sequence, in FP16.

    >>> round(sum(op.flop_count for op in block_ops()) / 1e12, 1)
    7.6
    """
    rows, head = TOKENS, WIDTH // HEADS
    if fused_attention:
        attention = [ops.attention(batch=1, heads=HEADS, kv_heads=HEADS, head_dim=head, seq=TOKENS)]
    else:
        attention = [
            ops.batched_matmul(batch=HEADS, m=TOKENS, n=TOKENS, k=head).named("scores"),
            ops.softmax(rows=HEADS * TOKENS, cols=TOKENS),
            ops.batched_matmul(batch=HEADS, m=TOKENS, n=head, k=TOKENS).named("values"),
        ]
    norm = ops.layernorm(rows=rows, cols=WIDTH)
    residual = ops.elementwise(elements=rows * WIDTH, inputs=2)
    return (
        norm.named("norm 1"),
        ops.linear(batch=rows, d_in=WIDTH, d_out=3 * WIDTH).named("qkv"),
        *attention,
        ops.linear(batch=rows, d_in=WIDTH, d_out=WIDTH).named("projection"),
        residual.named("add 1"),
        norm.named("norm 2"),
        ops.linear(batch=rows, d_in=WIDTH, d_out=4 * WIDTH).named("up"),
        ops.elementwise(elements=rows * 4 * WIDTH, flops_per_element=9).named("GELU"),
        ops.linear(batch=rows, d_in=4 * WIDTH, d_out=WIDTH).named("down"),
        residual.named("add 2"),
    )


def _optimizer() -> Op:
    """Return Adam's step for the block: 12 FLOPs and 28 bytes for each parameter."""
    parameters = sum(op.params for op in block_ops())
    return Op("Adam", "elementwise", "vector", "fp32", 12 * parameters, 16 * parameters, 12 * parameters)
