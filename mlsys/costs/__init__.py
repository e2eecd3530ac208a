"""What running accelerators costs: money in `mlsys.costs.economics`, energy and carbon in `mlsys.costs.carbon`.

The energy of a single operation is a property of the chip: see `mlsys.hardware.energy`.
"""
