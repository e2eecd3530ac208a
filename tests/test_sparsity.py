import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mlsys import sparsity
from mlsys.errors import InvalidValue, UnknownName
from mlsys.sparsity import BSR, CSR, NMSparse, prune

Matrix = NDArray[np.float64]


def sparse_matrix(rows: int, cols: int, density: float, seed: int) -> Matrix:
    rng = np.random.default_rng(seed)
    return rng.integers(1, 9, (rows, cols)) * (rng.random((rows, cols)) < density).astype(np.float64)


matrices = st.builds(sparse_matrix, st.integers(1, 12), st.integers(1, 12), st.floats(0, 1), st.integers(0, 2**32 - 1))
shapes_nm = st.sampled_from([(1, 2), (1, 4), (2, 4), (3, 4), (4, 8), (2, 3), (4, 4)])


@pytest.mark.filterwarnings("ignore:Sparse (CSR|BSR) tensor support is in beta")
@given(matrix=matrices)
def test_csr_holds_the_arrays_of_torch(matrix: Matrix) -> None:
    csr, expected = CSR.from_dense(matrix), torch.from_numpy(matrix).to_sparse_csr()
    np.testing.assert_array_equal(csr.row_pointers, expected.crow_indices().numpy())
    np.testing.assert_array_equal(csr.columns, expected.col_indices().numpy())
    np.testing.assert_array_equal(csr.values, expected.values().numpy())
    np.testing.assert_array_equal(csr.to_dense(), matrix)


@pytest.mark.filterwarnings("ignore:Sparse (CSR|BSR) tensor support is in beta")
@given(
    rows=st.integers(1, 4),
    cols=st.integers(1, 4),
    block=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    density=st.floats(0, 0.6),
    seed=st.integers(0, 999),
)
def test_bsr_holds_the_arrays_of_torch(rows: int, cols: int, block: tuple[int, int], density: float, seed: int) -> None:
    matrix = sparse_matrix(rows * block[0], cols * block[1], density, seed)
    bsr, expected = BSR.from_dense(matrix, block), torch.from_numpy(matrix).to_sparse_bsr(block)
    np.testing.assert_array_equal(bsr.row_pointers, expected.crow_indices().numpy())
    np.testing.assert_array_equal(bsr.columns, expected.col_indices().numpy())
    np.testing.assert_array_equal(bsr.blocks, expected.values().numpy())
    np.testing.assert_array_equal(bsr.to_dense(), matrix)


@given(matrix=matrices, n=st.integers(1, 5), seed=st.integers(0, 999))
def test_sparse_products_equal_the_dense_one(matrix: Matrix, n: int, seed: int) -> None:
    right = np.random.default_rng(seed).integers(-4, 5, (matrix.shape[1], n)).astype(np.float64)
    np.testing.assert_array_equal(CSR.from_dense(matrix).matmul(right), matrix @ right)
    np.testing.assert_array_equal(BSR.from_dense(matrix, (1, 1)).matmul(right), matrix @ right)
    np.testing.assert_array_equal(BSR.from_dense(matrix, matrix.shape).matmul(right), matrix @ right)


@given(
    nm=shapes_nm, rows=st.integers(1, 6), groups=st.integers(1, 6), density=st.floats(0, 1), seed=st.integers(0, 999)
)
def test_nm_compression_loses_nothing_of_a_pruned_matrix(
    nm: tuple[int, int], rows: int, groups: int, density: float, seed: int
) -> None:
    n, m = nm
    pruned = prune(sparse_matrix(rows, groups * m, density, seed), n, m)
    sparse = NMSparse.from_dense(pruned, n, m)
    assert sparse.values.shape == (rows, groups * n)
    assert len(sparse.metadata) * 8 - 8 < rows * groups * sparsity.metadata_bits(n, m) <= len(sparse.metadata) * 8
    np.testing.assert_array_equal(sparse.to_dense(), pruned)
    assert (np.diff(sparse.places(), axis=2) > 0).all()
    right = np.random.default_rng(seed).integers(-4, 5, (groups * m, 3)).astype(np.float64)
    np.testing.assert_array_equal(sparse.matmul(right), pruned @ right)


@given(nm=shapes_nm, rows=st.integers(1, 6), groups=st.integers(1, 6), seed=st.integers(0, 999))
def test_pruning_keeps_the_largest_magnitudes(nm: tuple[int, int], rows: int, groups: int, seed: int) -> None:
    n, m = nm
    matrix = np.random.default_rng(seed).normal(size=(rows, groups * m))
    pruned = prune(matrix, n, m)
    for row, kept_row in zip(matrix.reshape(-1, m), pruned.reshape(-1, m), strict=True):
        kept = kept_row[kept_row != 0]
        assert len(kept) == n
        assert set(kept) <= set(row)
        assert sorted(np.abs(kept)) == sorted(np.abs(row))[m - n :]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float16])
def test_pruning_compares_magnitudes_in_every_format(dtype: type) -> None:
    least = np.iinfo(dtype).min if np.issubdtype(dtype, np.signedinteger) else 100
    assert prune(np.array([[0, least, 3, 7]], dtype)).tolist() == [[0, least, 0, 7]]
    assert prune(np.array([[3, 0, 0, 7]], dtype)).tolist() == [[3, 0, 0, 7]]


def test_two_of_four_as_in_the_course() -> None:
    pruned = prune(np.array([[3, 0, -1, 2]]))
    sparse = NMSparse.from_dense(pruned)
    assert sparse.values.tolist() == [[3, 2]]
    assert sparse.places().tolist() == [[[0, 3]]]
    # Places 0 and 3, two bits each from the lowest up: 0b1100.
    assert sparse.metadata.tolist() == [0b1100]
    assert sparsity.metadata_bits(2, 4) == 4


def test_fp16_2_of_4_takes_the_bytes_of_the_formula() -> None:
    weights = prune(np.random.default_rng(0).normal(size=(64, 128))).astype(np.float16)
    sparse = NMSparse.from_dense(weights)
    assert weights.nbytes / sparse.nbytes == sparsity.nm_compression(2, 4, "fp16")


@pytest.mark.parametrize(("dtype", "ratio"), [("fp16", 8 / 4.5), ("int8", 4 / 2.5), ("fp32", 16 / 8.5)])
def test_compression_stays_below_two(dtype: str, ratio: float) -> None:
    assert sparsity.nm_compression(2, 4, dtype) == pytest.approx(ratio)


@given(matrix=matrices)
def test_csr_bytes_are_those_of_its_arrays(matrix: Matrix) -> None:
    csr = CSR.from_dense(matrix)
    size = sparsity.csr_bytes(
        rows=matrix.shape[0], cols=matrix.shape[1], nonzeros=np.count_nonzero(matrix), dtype="fp64"
    )
    assert size.m_as("byte") == csr.nbytes


def test_bsr_bytes_are_those_of_its_arrays() -> None:
    bsr = BSR.from_dense(sparse_matrix(12, 8, 0.2, 3), (3, 2))
    size = sparsity.bsr_bytes(block_rows=4, blocks=len(bsr.blocks), block=(3, 2), dtype="fp64")
    assert size.m_as("byte") == bsr.nbytes


def test_csr_of_the_course() -> None:
    places = 4096 * 4096
    size = sparsity.csr_bytes(rows=4096, cols=4096, nonzeros=round(places * 0.1), dtype="fp16")
    assert size.m_as("MB") == pytest.approx(10.1, abs=0.05)
    assert places * 2 / size.m_as("byte") == pytest.approx(3.3, abs=0.05)
    half = sparsity.csr_bytes(rows=4096, cols=4096, nonzeros=places // 2, dtype="fp16")
    assert half.m_as("byte") / (places * 2) == pytest.approx(1.5, abs=0.001)


@given(dtype=st.sampled_from(["fp32", "fp16", "int8"]), rows=st.integers(500, 2000))
def test_csr_breaks_even_at_its_density(dtype: str, rows: int) -> None:
    density = sparsity.csr_break_even_density(dtype)
    dense_bytes = rows * rows * {"fp32": 4, "fp16": 2, "int8": 1}[dtype]
    size = sparsity.csr_bytes(rows=rows, cols=rows, nonzeros=int(density * rows * rows), dtype=dtype)
    assert size.m_as("byte") == pytest.approx(dense_bytes, rel=0.02)


def test_group_with_too_many_values_is_named() -> None:
    matrix = np.zeros((3, 8))
    matrix[1, 4:7] = 1
    with pytest.raises(InvalidValue, match="row 1, columns 4 to 7 hold 3 non-zeros: 2:4 allows 2; prune"):
        NMSparse.from_dense(matrix)


@pytest.mark.parametrize(
    ("columns", "message"),
    [(10, "10 columns do not divide into groups of 4: the nearest sizes are 8 or 12"), (3, "are 4")],
)
def test_columns_that_do_not_divide_are_refused(columns: int, message: str) -> None:
    for function in (prune, NMSparse.from_dense):
        with pytest.raises(InvalidValue, match=message):
            function(np.ones((2, columns)))


def test_impossible_requests_are_refused() -> None:
    with pytest.raises(InvalidValue, match="5:4 keeps more"):
        prune(np.ones((2, 4)), 5, 4)
    with pytest.raises(InvalidValue, match="3 rows do not divide into groups of 2"):
        BSR.from_dense(np.ones((3, 4)), (2, 2))
    with pytest.raises(InvalidValue, match="rows and columns"):
        CSR.from_dense(np.ones(3))
    with pytest.raises(InvalidValue, match="needs 4 rows"):
        CSR.from_dense(np.ones((2, 4))).matmul(np.ones((3, 2)))
    with pytest.raises(InvalidValue, match="has 4 places"):
        sparsity.csr_bytes(rows=2, cols=2, nonzeros=5)
    with pytest.raises(UnknownName):
        sparsity.nm_compression(2, 4, "fp12")
