"""The calculator of a fleet's energy and carbon: use, building, grid by year, manufacture, and the electricity bill."""

from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys import viz
from mlsys.costs import carbon
from mlsys.costs.economics import power_cost
from mlsys.costs.prices import electricity

YEARS = (2023, 2025)
"""Years of the grids, the one with more of them first."""
PLACES = {"texas-industrial": "industry in Texas", "california-industrial": "industry in California"}
"""Whose price of electricity can be chosen, and what it is called."""
PRICE_YEAR = 2023
MAKING = {
    "h100-share-of-board": "H100, share of a board",
    "a100-card": "A100, card alone",
    "a100-with-server": "A100 and share of a server",
    "bloom-gpu": "assumed for BLOOM",
}
"""The estimates of the carbon of making a chip, for a list."""

LIMITS = {
    "chips": (1, 1_000_000),
    "watts": (1, 3000),
    "idle": (0, 3000),
    "busy": (0, 100),
    "grams": (0, 2000),
    "life": (1, 15),
}
"""What may be entered: chips, watts with work and without, percent of the hours, gCO2 per kWh, and years of use."""
FIRST = {
    "chips": 1000, "watts": 600, "idle": 130, "busy": 60, "grams": 400, "life": 4, "pue": "google", "year": 2023,
    "grid": "world", "embodied": "h100-share-of-board", "place": "texas-industrial",
}  # fmt: skip


def average_watts(watts: float, idle: float, busy: float) -> float:
    """Return the average power of a chip that works in `busy` percent of the hours."""
    return idle + (watts - idle) * busy / 100


def yearly(watts: float, chips: int, pue: float, grams: float, kilos: float, life: float) -> dict[str, float]:
    """Return kWh, tonnes of the electricity and tonnes of the manufacture for a year of use, from the package."""
    energy = carbon.fleet_energy(watts, chips, hours=8760, pue=pue)
    return {
        "kwh": energy.m_as("kW*hour"),
        "used": carbon.emissions(energy, grams).m_as("tCO2"),
        "made": kilos * chips / life / 1000,
    }


def price_per_kwh(place: str) -> float:
    """Return dollars for a kilowatt-hour in `PRICE_YEAR`."""
    return float(electricity(place, PRICE_YEAR).value.m_as("USD/(kW*hour)"))


def content() -> Content:
    """The numbers and the fallback of the calculator."""
    from _figures.sustainability import country

    grids = {
        year: {name: found.value.m_as("gCO2/(kW*hour)") for name, found in carbon.grids(year).items()} for year in YEARS
    }
    names = sorted({name for found in grids.values() for name in found}, key=country)
    pues = {name: carbon.pue(name).value.m for name in ("google", "average")}
    kilos = {name: carbon.embodied(name) for name in carbon.EMBODIED.names()}
    first = _first(FIRST["grid"])
    return Content(
        title="Energy and carbon of a fleet",
        numbers={
            "grids": {str(year): found for year, found in grids.items()},
            "names": [{"id": name, "name": country(name)} for name in names],
            "pues": [{"id": "google", "name": f"as at Google, {pues['google']}", "pue": pues["google"]},
                     {"id": "average", "name": f"average of a survey, {pues['average']}", "pue": pues["average"]}],
            "embodied": [
                {"id": name, "name": f"{mass.value.m} kg: {MAKING[name]}", "kilos": mass.value.m_as("kgCO2")}
                for name, mass in kilos.items()
            ],
            "places": [
                {"id": place, "name": f"{words}, {PRICE_YEAR}", "price": price_per_kwh(place)}
                for place, words in PLACES.items()
            ],
            "priceYear": PRICE_YEAR, "limits": LIMITS, "first": FIRST, "years": YEARS,
        },
        picture=_picture,
        alt="Horizontal bars of tonnes a year on the grids of 2023, the cleanest first, for a thousand chips: from "
        f"{_total('norway'):,.0f} in Norway over {first['used'] + first['made']:,.0f} on the mix of the world to "
        f"{_total('india'):,.0f} in India. In each bar, the same 41 tonnes are for making the chips.",
        tables=(_table(grids[2023]),),
    )  # fmt: skip


def _first(grid: str) -> dict[str, float]:
    watts = average_watts(FIRST["watts"], FIRST["idle"], FIRST["busy"])
    grams = carbon.grid(grid, FIRST["year"]).m_as("gCO2/(kW*hour)")
    kilos = carbon.embodied(FIRST["embodied"]).value.m_as("kgCO2")
    return yearly(watts, FIRST["chips"], carbon.pue(FIRST["pue"]).value.m, grams, kilos, FIRST["life"])


def _total(grid: str) -> float:
    return _first(grid)["used"] + _first(grid)["made"]


def _table(grids: dict[str, float]) -> Table:
    from _figures.sustainability import country

    head = ("grid of 2023", "gCO₂ per kWh", "electricity, tonnes a year", "making, tonnes a year", "share of making")
    rows = []
    for name in sorted(grids, key=lambda one: grids[one]):
        found = _first(name)
        share = found["made"] / (found["made"] + found["used"])
        rows.append(
            (
                country(name),
                f"{grids[name]:.0f}",
                f"{found['used']:,.0f}",
                f"{found['made']:,.0f}",
                f"{100 * share:.0f}%",
            )
        )
    watts = average_watts(FIRST["watts"], FIRST["idle"], FIRST["busy"])
    bill = power_cost(watts * FIRST["chips"], price_per_kwh(FIRST["place"]), pue=carbon.pue(FIRST["pue"]).value.m)
    title = (
        f"A thousand chips at {watts:.0f} W on average, PUE as at Google, {FIRST['life']} years of use; their "
        f"electricity costs {bill.m:,.0f} dollars a year at the price of industry in Texas, {PRICE_YEAR}"
    )
    return Table(title, (head, *rows))


def _picture() -> Figure:
    from _figures.sustainability import country

    grids = carbon.grids(FIRST["year"])
    fig, ax, colors, _ = viz.setup_plot(figsize=(6.6, 0.8 + 0.24 * len(grids)))
    names = sorted(grids, key=lambda name: grids[name].value)
    for place, name in enumerate(names):
        found = _first(name)
        ax.barh(
            place, found["made"], height=0.66, color=colors["OrangeLine"], label=None if place else "making the chips"
        )
        ax.barh(
            place, found["used"], left=found["made"], height=0.66, color=colors["BlueLine"],
            label=None if place else "electricity",
        )  # fmt: skip
    ax.set(yticks=range(len(names)), yticklabels=[country(name) for name in names], xlabel="tonnes of CO₂ a year")
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.legend(loc="upper right")
    return fig
