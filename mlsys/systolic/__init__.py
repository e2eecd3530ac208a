"""Systolic arrays: how many cycles a matrix product takes, and an array that computes it cycle by cycle.

C[m, n] = A[m, k] B[k, n] runs on a grid of rows x cols elements. A holds the inputs, B the weights. The dataflow says
which matrix stays in the grid: "ws" keeps the weights, "os" the outputs, "is" the inputs.
"""

from mlsys.systolic.accesses import (
    DramAccesses,
    SramAccesses,
    dram_accesses,
    sram_accesses,
)
from mlsys.systolic.array import PARTS, Fault
from mlsys.systolic.cycles import (
    DATAFLOWS,
    Folding,
    fringe_efficiency,
    gemm_cycles,
    stream_efficiency,
    utilization,
)
from mlsys.systolic.frames import Frame, frames
from mlsys.systolic.simulation import Simulation, simulate

__all__ = [
    "DATAFLOWS",
    "PARTS",
    "DramAccesses",
    "Fault",
    "Folding",
    "Frame",
    "Simulation",
    "SramAccesses",
    "dram_accesses",
    "frames",
    "fringe_efficiency",
    "gemm_cycles",
    "simulate",
    "sram_accesses",
    "stream_efficiency",
    "utilization",
]
