"""What the tiling lab measures for the record: the ladder of tile sizes in float32, and tensor cores in float16."""

from typing import Any

import torch

from mlsys.measure.bench import row
from mlsys.measure.ceilings import Ceilings
from mlsys.measure.records import Row

LADDER = (  # tile_m, tile_n, tile_k, warps
    (16, 16, 16, 1),
    (32, 32, 32, 4),
    (64, 64, 32, 4),
    (128, 64, 16, 8),
)
SIDES = (2048, 4096)


def rows(names: dict[str, Any], ceilings: Ceilings) -> list[Row]:
    """Time the lab's kernel tile by tile beside cuBLAS; tf32 stays off, for the kernel multiplies in full float32."""
    torch.backends.cuda.matmul.allow_tf32 = False
    found = []
    for side in SIDES:
        for tile_m, tile_n, tile_k, warps in LADDER:
            constants = {"TILE_M": tile_m, "TILE_N": tile_n, "TILE_K": tile_k, "GROUP_M": 8, "num_warps": warps}
            found.append(measure(names, ceilings, "tiling ladder", side, "fp32", torch.float32, constants))
    if ceilings.device.has_triton_tensor_cores:
        for side in SIDES:
            constants = names["tensor_config"]((side, side, side), "fp16")
            found.append(measure(names, ceilings, "tensor-core matmul", side, "fp16", torch.float16, constants))
    return found


def measure(
    names: dict[str, Any],
    ceilings: Ceilings,
    name: str,
    side: int,
    dtype: str,
    torch_dtype: torch.dtype,
    constants: dict[str, int],
) -> Row:
    """One configuration of the lab's kernel on square matrices, checked against the library before it is timed."""
    a, b = (torch.randn(side, side, device="cuda", dtype=torch_dtype) for _ in range(2))
    out, library = torch.empty_like(a), torch.empty_like(a)

    def kernel() -> None:
        names["launch_matmul"](names["matmul_kernel"], constants, out, a, b)

    def cublas() -> None:
        torch.matmul(a, b, out=library)

    kernel()
    cublas()
    names["grading"].assert_close(out, library, what=f"{name} {constants}")
    return row(
        "lab",
        name,
        f"{constants['TILE_M']}x{constants['TILE_N']}x{constants['TILE_K']}",
        (side, side, side),
        dtype,
        call=kernel,
        peers={"cuBLAS": cublas},
        work=2 * side**3 / 1e12,
        ceiling=ceilings.matmul[dtype].m_as("TFLOP/s"),
        rate_unit="TFLOP/s",
    )
