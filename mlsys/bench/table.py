"""What `mlsys bench` and `mlsys roofline` print: ceilings one by one, and rows with one line per sweep."""

from collections.abc import Iterable

from mlsys.measure.ceilings import Ceilings
from mlsys.measure.records import Row


def ceilings_table(ceilings: Ceilings) -> str:
    """Write one line per ceiling, with its unit."""
    rates = {f"{mix} bandwidth": (rate, "GB/s") for mix, rate in ceilings.bandwidths.items()}
    rates = {"copy bandwidth": (ceilings.copy_bandwidth, "GB/s"), **rates}
    rates |= {f"{precision} matmul": (rate, "TFLOP/s") for precision, rate in ceilings.matmul.items()}
    rates |= {f"{precision} multiply-adds": (rate, "TFLOP/s") for precision, rate in ceilings.fma.items()}
    rates |= {f"{precision} chain of products": (rate, "TFLOP/s") for precision, rate in ceilings.mma.items()}
    rates |= {f"host link, {way}": (rate, "GB/s") for way, rate in ceilings.host_link.items()}
    rates |= {f"launch, {how}": (time, "us") for how, time in ceilings.launch_latency.items()}
    return "\n".join(f"  {name:<28}{rate.m_as(unit):12,.3f} {unit}" for name, (rate, unit) in rates.items())


def rows_table(rows: Iterable[Row]) -> str:
    """Write one line per name, variant and dtype: rates (or microseconds) over its shapes, and ratios to peers."""
    sweeps: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        sweeps.setdefault((row.name, row.variant, row.dtype), []).append(row)
    lines = []
    for (name, variant, dtype), sweep in sweeps.items():
        lines.append(f"{name}, {variant}, {dtype}: {values(sweep)}")
        for peer in sorted({peer for row in sweep for peer in row.peers}):
            ratios = " ".join(f"{row.peers[peer]:.2f}" for row in sweep if peer in row.peers)
            lines.append(f"    speed relative to {peer}: {ratios}")
        if any(row.sm_clock_mhz is not None for row in sweep):
            lines.append(f"    SM clock, MHz: {read(row.sm_clock_mhz for row in sweep)}")
            lines.append(f"    power, W: {read(row.power_w for row in sweep)}")
    return "\n".join(lines)


def read(values: Iterable[float | None]) -> str:
    """Write what NVML said for each row of a sweep."""
    return " ".join("-" if value is None else f"{value:.0f}" for value in values)


def conditions(rows: Iterable[Row]) -> str:
    """Write one line on the GPU's clock and power during a run: their range, or that they were not read."""
    rows = list(rows)
    found = []
    for name, unit, values in (
        ("SM clock", "MHz", [row.sm_clock_mhz for row in rows if row.sm_clock_mhz is not None]),
        ("power", "W", [row.power_w for row in rows if row.power_w is not None]),
    ):
        span = f"{min(values):,.0f} to {max(values):,.0f} {unit} in {len(values)} of {len(rows)} rows" if values else ""
        found.append(f"{name}: {span or 'not read'}")
    return "; ".join(found)


def values(sweep: list[Row]) -> str:
    """Write rates with their share of the ceiling, or times where there is no rate."""
    shown = [
        f"{row.median_s * 1e6:.3g}"
        if row.achieved is None or row.ceiling is None
        else f"{row.achieved:.4g} ({row.achieved / row.ceiling:.0%})"
        for row in sweep
    ]
    return f"{' '.join(shown)} {sweep[0].rate_unit or 'us'}"
