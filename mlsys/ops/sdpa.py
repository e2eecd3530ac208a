"""Scaled dot-product attention: a whole prompt at once, or one new token against the stored keys and values."""

from dataclasses import replace

from mlsys.core.arguments import positive_int
from mlsys.core.dtypes import bytes_per_element
from mlsys.errors import InvalidValue
from mlsys.ops.op import Op


def attention(
    *,
    batch: int,
    heads: int,
    seq: int,
    head_dim: int,
    kv_seq: int | None = None,
    kv_heads: int | None = None,
    fused: bool = True,
    query_block: int | None = None,
    dtype: str = "fp16",
) -> Op:
    """Attention of `seq` queries over `kv_seq` keys and values: softmax(Q K^T / sqrt(head_dim)) V for every head.

    Formula: FLOPs = 4 batch heads seq kv_seq head_dim: the two products, not halved under a causal mask. The softmax
    between them is left out; it adds 5 FLOPs per score (see `softmax`) to the products' 4 head_dim. Bytes, with Q and
    the result of batch heads seq head_dim elements, K and V of batch kv_heads kv_seq head_dim elements, and S of
    batch heads seq kv_seq scores:

    - fused: Q, K, V read and the result written once; no score leaves the chip. With `query_block`, K and V are read
      again for every block of queries, the traffic of a kernel whose cache keeps nothing between blocks.
    - not fused (three kernels): also S written and read by the softmax, and written and read again for S V.

    Source: Dao, Fu, Ermon, Rudra, Re, FlashAttention, NeurIPS 2022; Ainslie et al., GQA, EMNLP 2023 (shared K and V).

    Args:
        batch: sequences.
        heads: query heads.
        seq: queries of each sequence.
        head_dim: elements of a query, key or value.
        kv_seq: keys and values of each sequence; without it, seq.
        kv_heads: heads of K and V, shared by equal groups of query heads; without it, heads.
        fused: whether the scores stay on the chip.
        query_block: queries of one pass over K and V, if they are not read only once.
        dtype: format of all tensors.

    Raises:
        InvalidValue: if a size is not a positive integer, kv_heads does not divide heads, or query_block is given for
            the version that is not fused.
        UnknownName: if the dtype is unknown.

    >>> from mlsys import ops
    >>> whole = ops.attention(batch=1, heads=1, seq=4096, head_dim=64)
    >>> unfused = ops.attention(batch=1, heads=1, seq=4096, head_dim=64, fused=False)
    >>> round(whole.bytes.to("MB"), 1), round(unfused.bytes.to("MB")), round(unfused.intensity, 1)
    (<Quantity(2.1, 'megabyte')>, <Quantity(136, 'megabyte')>, <Quantity(31.5, 'flop / byte')>)
    """
    kv_seq = seq if kv_seq is None else kv_seq
    kv_heads = heads if kv_heads is None else kv_heads
    sizes = {"batch": batch, "heads": heads, "seq": seq, "head_dim": head_dim, "kv_seq": kv_seq, "kv_heads": kv_heads}
    batch, heads, seq, head_dim, kv_seq, kv_heads = (positive_int(name, value) for name, value in sizes.items())
    if heads % kv_heads:
        divisors = ", ".join(str(d) for d in range(1, heads + 1) if heads % d == 0)
        raise InvalidValue(f"kv_heads is {kv_heads}: it must divide the {heads} query heads; allowed: {divisors}")
    if query_block is not None and not fused:
        raise InvalidValue(f"query_block is {query_block}, but only the fused version works in blocks of queries")
    passes = 1 if query_block is None else -(-seq // positive_int("query_block", query_block))
    scores = batch * heads * seq * kv_seq
    queries = batch * heads * seq * head_dim
    keys_and_values = 2 * batch * kv_heads * kv_seq * head_dim
    spilled = 0 if fused else 2 * scores
    size = bytes_per_element(dtype)
    return Op(
        name="attention",
        kind="attention",
        engine="tensor",
        dtype=dtype,
        flop_count=4 * scores * head_dim,
        read_count=size * (queries + passes * keys_and_values + spilled),
        write_count=size * (queries + spilled),
    )


def attention_decode(
    *, batch: int, heads: int, context: int, head_dim: int, kv_heads: int | None = None, dtype: str = "fp16"
) -> Op:
    """Attention of one new token per sequence over its KV cache.

    Formula: `attention` with seq = 1 and kv_seq = context. The whole cache is read once, so the intensity is about
    heads / kv_heads FLOP/byte at 2 bytes per element, whatever the batch. Writing the new key and value belongs to
    the projection that makes them.

    Args:
        batch: sequences.
        heads: query heads.
        context: tokens in the cache, the new one included.
        head_dim: elements of a query, key or value.
        kv_heads: heads of K and V, shared by equal groups of query heads; without it, heads.
        dtype: format of cache and activations.

    Raises:
        InvalidValue: if a size is not a positive integer, or kv_heads does not divide heads.
        UnknownName: if the dtype is unknown.

    >>> round(attention_decode(batch=1, heads=64, kv_heads=8, context=4096, head_dim=128).intensity, 1)
    <Quantity(8.0, 'flop / byte')>
    """
    positive_int("context", context)
    op = attention(batch=batch, heads=heads, seq=1, kv_seq=context, head_dim=head_dim, kv_heads=kv_heads, dtype=dtype)
    cache = op.read_count - op.write_count  # all that is read but the query, which is as large as the result
    return replace(op, name="attention_decode", kind="attention_decode", resident_count=cache)
