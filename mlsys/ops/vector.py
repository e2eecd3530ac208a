"""Element-wise operations, on the vector unit. FLOPs of an exponential or a square root count as one."""

from mlsys.core.arguments import non_negative_int, positive_int
from mlsys.core.dtypes import bytes_per_element
from mlsys.ops.op import Op


def elementwise(
    *, elements: int, inputs: int = 1, outputs: int = 1, flops_per_element: int = 1, dtype: str = "fp16"
) -> Op:
    """A function applied element by element, such as ReLU (one input) or a sum of tensors (two inputs).

    Formula: FLOPs = elements flops_per_element; bytes = size elements (inputs + outputs).

    Args:
        elements: elements of each tensor.
        inputs: tensors read.
        outputs: tensors written.
        flops_per_element: FLOPs for one element of the result; 0 for a copy.
        dtype: format of all tensors.

    Raises:
        InvalidValue: if a size is not a positive integer, or flops_per_element is no integer of 0 or more.
        UnknownName: if the dtype is unknown.

    >>> elementwise(elements=2**24, inputs=2, dtype="fp32").bytes.to("MB")
    <Quantity(201.326592, 'megabyte')>
    """
    elements = positive_int("elements", elements)
    tensor_bytes = bytes_per_element(dtype) * elements
    return Op(
        name="elementwise",
        kind="elementwise",
        engine="vector",
        dtype=dtype,
        flop_count=elements * non_negative_int("flops_per_element", flops_per_element),
        read_count=tensor_bytes * positive_int("inputs", inputs),
        write_count=tensor_bytes * positive_int("outputs", outputs),
    )
