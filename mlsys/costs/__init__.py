"""What running accelerators costs: money, energy and carbon.

`mlsys.costs.economics` has the formulas of money, `mlsys.costs.serving` the price of a token, `mlsys.costs.prices` what
was quoted in which year, `mlsys.costs.carbon` the energy and carbon of a fleet, and `mlsys.costs.dated` the rule that
no other year stands in for the one asked for.

The energy of a single operation is a property of the chip: see `mlsys.hardware.energy`.
"""
