"""Embeddings: rows of large tables, gathered by index."""

from mlsys.core.arguments import non_negative_int, positive_int
from mlsys.core.dtypes import bytes_per_element
from mlsys.ops.op import Op


def embedding(*, lookups: int, dim: int, table_rows: int = 0, index_bytes: int = 8, dtype: str = "fp16") -> Op:
    """Rows of a table gathered by index: one row read and one written per lookup, no arithmetic.

    Formula: FLOPs = 0; bytes read = lookups (size dim + index_bytes); bytes written = size lookups dim.

    Args:
        lookups: number of rows gathered.
        dim: elements of a row.
        table_rows: rows of the whole table, if its parameters shall count (0: not).
        index_bytes: bytes of one index.
        dtype: format of the table.

    Raises:
        InvalidValue: if a size is not a positive integer.
        UnknownName: if the dtype is unknown.

    >>> embedding(lookups=512, dim=768, table_rows=50257).params
    38597376
    """
    return _gather("embedding", positive_int("lookups", lookups), 1, dim, table_rows, index_bytes, dtype)


def embedding_bag(
    *, bags: int, bag_size: int, dim: int, table_rows: int = 0, index_bytes: int = 8, dtype: str = "fp16"
) -> Op:
    """Sums of gathered table rows: `bag_size` rows are read and added up for each of `bags` results.

    Formula: FLOPs = bags bag_size dim (each row is added to an accumulator); bytes read = bags bag_size
    (size dim + index_bytes); bytes written = size bags dim.
    Source: Naumov et al., Deep Learning Recommendation Model, arXiv:1906.00091 (2019).

    Args:
        bags: number of sums.
        bag_size: rows in each sum.
        dim: elements of a row.
        table_rows: rows of the whole table, if its parameters shall count (0: not).
        index_bytes: bytes of one index.
        dtype: format of the table.

    Raises:
        InvalidValue: if a size is not a positive integer.
        UnknownName: if the dtype is unknown.

    >>> bag = embedding_bag(bags=2048, bag_size=80, dim=64, dtype="fp32")
    >>> round(bag.intensity, 2)
    <Quantity(0.24, 'flop / byte')>
    """
    bags, bag_size = positive_int("bags", bags), positive_int("bag_size", bag_size)
    return _gather("embedding_bag", bags, bag_size, dim, table_rows, index_bytes, dtype)


def _gather(kind: str, results: int, rows_each: int, dim: int, table_rows: int, index_bytes: int, dtype: str) -> Op:
    dim = positive_int("dim", dim)
    rows = results * rows_each
    row_bytes = bytes_per_element(dtype) * dim
    return Op(
        name=kind,
        kind=kind,
        engine="vector",
        dtype=dtype,
        flop_count=rows * dim if kind == "embedding_bag" else 0,
        read_count=rows * (row_bytes + positive_int("index_bytes", index_bytes)),
        write_count=results * row_bytes,
        params=non_negative_int("table_rows", table_rows) * dim,
        resident_count=rows * row_bytes,
    )
