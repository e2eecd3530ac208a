"""One unit registry for the course, with a dimension of its own for everything that must not be mixed up.

FLOPs, bytes, parameters, tokens, dollars and grams of CO2 are separate dimensions, so adding bytes to parameters or
reading a FLOP count as bytes raises `pint.DimensionalityError`. Decimal and binary prefixes are different numbers:
1 GB is 10^9 bytes and 1 GiB is 2^30 bytes, and converting one to the other is exact.

>>> from mlsys.units import GB, GiB, TB, TFLOP, second
>>> (1 * GiB).to(GB)
<Quantity(1.07374182, 'gigabyte')>
>>> (312 * TFLOP / second / (2.039 * TB / second)).to("flop/byte")
<Quantity(153.016184, 'flop / byte')>
>>> 1 * GB + 1 * TFLOP
Traceback (most recent call last):
...
pint.errors.DimensionalityError: Cannot convert from 'gigabyte' ([information]) to 'teraflop' ([computation])
"""

from importlib.resources import files
from typing import TypeAlias

import pint

ureg: pint.UnitRegistry = pint.UnitRegistry(
    files("mlsys").joinpath("data/units.txt").read_text(encoding="utf-8").splitlines()
)
"""The registry that every quantity of the package belongs to.

:meta hide-value:
"""

Quantity: TypeAlias = pint.Quantity

second, ms, us, ns = ureg.second, ureg.millisecond, ureg.microsecond, ureg.nanosecond
hour, year = ureg.hour, ureg.year
hertz, GHz = ureg.hertz, ureg.gigahertz
joule, pJ, watt = ureg.joule, ureg.picojoule, ureg.watt

flop, GFLOP, TFLOP, PFLOP = ureg.flop, ureg.gigaflop, ureg.teraflop, ureg.petaflop
byte, bit = ureg.byte, ureg.bit
KB, MB, GB, TB = ureg.kilobyte, ureg.megabyte, ureg.gigabyte, ureg.terabyte
KiB, MiB, GiB, TiB = ureg.kibibyte, ureg.mebibyte, ureg.gibibyte, ureg.tebibyte
param, token = ureg.param, ureg.token
dollar, gram_co2, tonne_co2 = ureg.dollar, ureg.gram_co2, ureg.tonne_co2
