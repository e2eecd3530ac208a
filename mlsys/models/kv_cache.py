"""The keys and values that a decoder keeps for the tokens before.

>>> kv_cache_bytes(layers=32, kv_heads=32, head_dim=128, tokens=2048).to("GiB")
<Quantity(1.0, 'gibibyte')>
"""

from mlsys.core.arguments import non_negative_int, positive_int
from mlsys.core.dtypes import bytes_per_element
from mlsys.units import Quantity, ureg


def kv_cache_bytes(
    *, layers: int, kv_heads: int, head_dim: int, tokens: int, batch: int = 1, dtype: str = "fp16"
) -> Quantity:
    """Size of the keys and values that a decoder keeps.

    Formula: 2 x layers x kv_heads x head_dim x tokens x batch x bytes per element.

    Args:
        layers: blocks of the model.
        kv_heads: heads of keys and values; fewer than query heads under grouped-query attention.
        head_dim: elements of one head.
        tokens: positions kept for each sequence.
        batch: sequences.
        dtype: number format of the cache.

    Raises:
        InvalidValue: if a size is not a positive integer (`tokens` may be 0).
        UnknownName: if the dtype is unknown.

    >>> kv_cache_bytes(layers=32, kv_heads=32, head_dim=128, tokens=1)
    <Quantity(524288, 'byte')>
    """
    elements = 2 * positive_int("layers", layers) * positive_int("kv_heads", kv_heads)
    elements *= positive_int("head_dim", head_dim) * non_negative_int("tokens", tokens) * positive_int("batch", batch)
    return ureg.Quantity(elements * bytes_per_element(dtype), "byte")
