"""Sparse matrices: CSR, BSR and N:M, with real compression, metadata and products, and what each costs to store.

>>> import numpy as np
>>> from mlsys.sparsity import NMSparse, prune
>>> weights = prune(np.arange(32.0).reshape(2, 16))
>>> sparse = NMSparse.from_dense(weights)
>>> bool((sparse.to_dense() == weights).all()), weights.nbytes, sparse.nbytes
(True, 256, 132)
"""

from mlsys.sparsity.compressed_rows import BSR, CSR
from mlsys.sparsity.storage import bsr_bytes, csr_break_even_density, csr_bytes, metadata_bits, nm_compression
from mlsys.sparsity.structured import NMSparse, prune

__all__ = [
    "BSR",
    "CSR",
    "NMSparse",
    "bsr_bytes",
    "csr_break_even_density",
    "csr_bytes",
    "metadata_bits",
    "nm_compression",
    "prune",
]
