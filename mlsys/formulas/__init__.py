"""Laws and formulas of the course. Arguments are quantities, or plain numbers in the base unit that is named.

>>> from mlsys.formulas import amdahl
>>> amdahl(0.5, 2)
1.3333333333333333
"""

from mlsys.formulas.limits import attainable, hardware_balance, iron_law, required_bandwidth
from mlsys.formulas.serving import batch_intensity, crossing_batch, decode_throughput, model_memory, token_latency
from mlsys.formulas.speedup import amdahl, amdahl_ceiling, amdahl_grid, required_share

__all__ = [
    "amdahl",
    "amdahl_ceiling",
    "amdahl_grid",
    "attainable",
    "batch_intensity",
    "crossing_batch",
    "decode_throughput",
    "hardware_balance",
    "iron_law",
    "model_memory",
    "required_bandwidth",
    "required_share",
    "token_latency",
]
