"""The scheduler of a phone: stages of a camera's image on the blocks of a chip, and what that costs."""

from functools import cache
from typing import Any

from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys.errors import InvalidValue
from mlsys.soc import Plan, Timeline, camera_pipeline, plan, run, soc

PHONE = soc("phone")
STAGES = camera_pipeline()
RATES = (30, 60)
"""Images per second."""
OTHERS = {
    "nothing": (0.0, 0),
    "40 GB/s, with equal rights": (40e9, 0),
    "40 GB/s, served first": (40e9, 1),
}
"""What a language model asks of the memory meanwhile: bytes per second, and priority."""
CLOCKS = PHONE.units[0].curve.points.clocks


def at(places: dict[str, str], clock: float, others: str = "nothing") -> Timeline:
    """Return the timeline of a placement in which all blocks run at one clock."""
    rate, priority = OTHERS[others]
    chosen = Plan(tuple((one.name, places[one.name]) for one in STAGES), {unit.name: clock for unit in PHONE.units})
    background = {"language model": rate} if rate else {}
    return run(STAGES, chosen, PHONE, background=background, background_priority=priority)


def mean_power_w(frame: Timeline, rate: int) -> float:
    """Return the mean power when an image comes `rate` times a second, or as often as the chip can."""
    return frame.mean_power_w(1 / rate, PHONE.base_w)


@cache
def presets() -> dict[str, dict[str, Any]]:
    """Return the placements that the buttons set: by name, the block of each stage and the clock."""
    frugal = {}
    for rate in RATES:
        found = []
        for clock in CLOCKS:
            try:
                chosen = plan(STAGES, PHONE, least="energy", deadline_s=1 / rate, clocks=(clock,))
            except InvalidValue:  # no plan at this clock is in time
                continue
            found.append((mean_power_w(at(dict(chosen.places), clock), rate), clock, dict(chosen.places)))
        _, clock, places = min(found, key=lambda one: one[0])
        frugal[str(rate)] = {"places": places, "clock": CLOCKS.index(clock)}
    fastest = {"places": dict(plan(STAGES, PHONE).places), "clock": len(CLOCKS) - 1}
    cpu = {"places": {one.name: "CPU" for one in STAGES}, "clock": len(CLOCKS) - 1}
    return {"cpu": cpu, "fastest": fastest, "frugal": frugal}


def content() -> Content:
    """The numbers and the fallback of the scheduler."""
    points = PHONE.units[0].curve.points
    stages: list[dict[str, Any]] = [
        {
            "name": one.name,
            "after": list(one.after),
            "bytes": one.bytes,
            "seconds": {
                unit.name: one.compute_s(unit) for unit in PHONE.units if all(unit.runs(kind) for kind in one.work)
            },
            "kinds": sorted(one.work),
        }
        for one in STAGES
    ]
    units = [
        {
            "name": unit.name,
            "bandwidth": unit.bandwidth,
            "dynamic": unit.curve.dynamic_w,
            "static": unit.curve.static_w,
        }
        for unit in PHONE.units
    ]
    return Content(
        title="A camera's image on a phone's blocks",
        numbers={
            "stages": stages,
            "units": units,
            "clocks": [{"share": clock, "energy": points.energy_scale(clock)} for clock in CLOCKS],
            "memory": PHONE.memory_bandwidth,
            "perByte": PHONE.memory_j_per_byte,
            "base": PHONE.base_w,
            "handoff": PHONE.handoff_s,
            "body": {
                "ambient": PHONE.body.ambient_c,
                "limit": PHONE.body.limit_c,
                "resistance": PHONE.body.kelvin_per_w,
                "constant": PHONE.body.time_constant_s,
            },
            "rates": list(RATES),
            "others": [{"name": name, "rate": rate, "priority": first} for name, (rate, first) in OTHERS.items()],
            "presets": presets(),
        },
        picture=_picture,
        alt="Bars on four lanes, CPU, GPU, NPU and DSP, over the time until the next image comes after 33 ms. The GPU "
        "removes noise, the NPU detects, the CPU sorts boxes and the GPU draws; all is done after 7 ms.",
        tables=(_table(),),
    )


def _table() -> Table:
    head = (
        "plan",
        "images per second",
        "clock",
        "ms",
        "mJ until the next image",
        "mean power, W",
        "case in the end, °C",
    )
    rows = []
    listed = presets()
    for name, places, clock, rate in (
        ("everything on the CPU", listed["cpu"]["places"], 1.0, 30),
        ("fastest", listed["fastest"]["places"], 1.0, 30),
        ("most frugal in time", listed["frugal"]["30"]["places"], CLOCKS[listed["frugal"]["30"]["clock"]], 30),
        ("most frugal in time", listed["frugal"]["60"]["places"], CLOCKS[listed["frugal"]["60"]["clock"]], 60),
    ):
        frame = at(places, clock)
        power = mean_power_w(frame, rate)
        energy = frame.energy_until_j(1 / rate, PHONE.base_w)
        end = PHONE.body.steady_c(power)
        rows.append(
            (
                name,
                str(rate),
                f"{100 * clock:.0f}%",
                f"{1e3 * frame.total_s:.1f}",
                f"{1e3 * energy:.1f}",
                f"{power:.2f}",
                f"{end:.1f}",
            )
        )
    return Table("What some plans cost", (head, *rows))


def _picture() -> Figure:
    import matplotlib.pyplot as plt
    from _figures.soc import timelines

    timelines({"fastest plan": at(presets()["fastest"]["places"], 1.0)}, PHONE, 1 / 30)
    return plt.gcf()
