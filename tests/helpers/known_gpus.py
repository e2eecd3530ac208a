"""Devices that need not be here, for the rules and the refusals of the labs' fastest kernels."""

from mlsys import Hardware
from mlsys.measure.device import Device

SHARED_BYTES = int(Hardware.get("h100-sxm").field("shared_memory_per_block").value.m_as("byte"))
H200 = Device("gpu", "NVIDIA H200", (9, 0), multiprocessors=132, shared_bytes=SHARED_BYTES)
A100 = Device("gpu", "NVIDIA A100", (8, 0), multiprocessors=108, shared_bytes=163 * 1024)
T4 = Device("gpu", "Tesla T4", (7, 5), multiprocessors=40, shared_bytes=64 * 1024)
SMALL = Device("gpu", "a GPU with little shared memory", (12, 0), multiprocessors=170, shared_bytes=99 * 1024)
NO_GPU = Device("cpu", "a laptop")
