"""Tables of the package's data with their sources: `{hardware-data} chips`, and so on for the names in `PARTS`."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from course_tables import Cell, table
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from mlsys import Hardware
from mlsys.core.sourced import Source, Sourced, data_folder, load_toml
from mlsys.growth import huang_parts, training_runs
from mlsys.hardware import Accelerator, UnknownField, UnknownPrecision
from mlsys.hardware.energy import bases
from mlsys.hardware.links import links
from mlsys.hardware.memory import levels
from mlsys.models import published_sizes
from mlsys.units import Quantity, ureg

Row = tuple[str, Sourced]
COLUMNS = ("quantity", "value", "holds for", "source")
ABSENT = "–"
NAMES = {
    # Properties of chips, `mlsys.hardware`.
    "announced": "year of announcement",
    "array_dim": "side of a systolic array",
    "blocks_per_sm": "thread blocks per SM",
    "boost_clock": "boost clock",
    "clock": "clock",
    "compute_units": "compute units",
    "die_area": "die area",
    "l1_capacity_per_sm": "L1 cache per SM",
    "l2_capacity": "L2 cache",
    "last_level_cache": "last-level cache",
    "memory_bandwidth": "memory bandwidth",
    "memory_capacity": "memory capacity",
    "neural_engine_rate": "rate of the Neural Engine",
    "on_chip_memory": "on-chip memory",
    "power_max": "highest power",
    "rate": "rate",
    "register_allocation": "piece in which registers are allocated",
    "registers_per_sm": "registers per SM",
    "registers_per_thread": "registers per thread",
    "shared_memory_allocation": "piece in which shared memory is allocated",
    "shared_memory_per_block": "shared memory per block",
    "shared_memory_per_sm": "shared memory per SM",
    "shared_memory_reserved": "shared memory reserved in each block",
    "sm_count": "SMs",
    "sm_partitions": "partitions of an SM",
    "special_per_clock": "special functions per SM and clock",
    "tdp": "design power (TDP)",
    "tensor_clock": "clock of the tensor units",
    "tensor_flop_per_clock": "operations per tensor unit and clock",
    "tensor_units": "tensor units",
    "threads_per_block": "threads per block",
    "threads_per_sm": "threads per SM",
    "transistors": "transistors",
    "vector_lanes": "vector lanes",
    # Levels of memory, `mlsys.hardware.memory` and `mlsys.hardware.energy`, and what is known of them.
    "register": "registers",
    "register_file": "register file",
    "shared": "shared memory",
    "l1": "L1 cache",
    "l2": "L2 cache",
    "l3": "L3 cache",
    "hbm": "HBM",
    "dram": "DRAM",
    "sram": "SRAM",
    "sram 8 KB": "SRAM of 8 KB",
    "sram 32 KB": "SRAM of 32 KB",
    "sram 1 MB": "SRAM of 1 MB",
    "array": "another processing element of the array",
    "buffer": "global buffer",
    "capacity": "capacity",
    "latency": "latency",
    "bandwidth": "bandwidth",
    # Operations, `mlsys.hardware.energy`.
    "mac": "multiply-accumulate (MAC)",
    "instruction": "a whole instruction",
}
"""What the field calls the quantities of the data files; names that begin with a precision are made by `named`."""
PRECISION = re.compile(r"(fp|bf|tf|int)\d+")


class DataDirective(SphinxDirective):
    """The argument says which part of the data; the page is read again when a data file changes."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Build the part from the data as it is now."""
        for path in sorted(Path(str(data_folder())).rglob("*.toml")):
            self.env.note_dependency(str(path))
        if self.arguments[0] not in PARTS:
            raise self.error(f"no data {self.arguments[0]!r}: there are {', '.join(PARTS)}")
        return PARTS[self.arguments[0]]()


def overview() -> list[nodes.Node]:
    """One line per chip with what chapters compare most; dense rates."""
    head = ("chip", "16 bit", "memory", "bandwidth", "FLOP/byte", NAMES["tdp"])
    body: list[list[Cell]] = []
    for chip in by_vendor():
        link = nodes.reference("", chip.name, refid=f"chip-{chip.id}", internal=True)
        readings: list[Callable[[Accelerator], Quantity]] = [
            lambda chip: chip.peak(sixteen_bit(chip)),
            lambda chip: chip.memory_capacity,
            lambda chip: chip.memory_bw,
            lambda chip: chip.ridge_point(sixteen_bit(chip)),
            lambda chip: chip.tdp,
        ]
        body.append([link, *(known(read, chip) for read in readings)])
    return [table(head, body, "course-overview")]


def sixteen_bit(chip: Accelerator) -> str:
    """The floating-point format of 16 bits that a chip multiplies: TPUs have only bf16."""
    return next((peak.precision for peak in chip.peaks if peak.precision in ("fp16", "bf16")), "fp16")


def known(read: Callable[[Accelerator], Quantity], chip: Accelerator) -> str:
    """What the documents of a chip give, or a dash."""
    try:
        value = read(chip)
    except (UnknownField, UnknownPrecision):
        return ABSENT
    return f"{value.m:.0f}" if value.check("flop/byte") else shown(value)


def by_vendor() -> list[Accelerator]:
    """All chips, those of one vendor together."""
    return sorted(Hardware.all(), key=lambda chip: (chip.vendor, chip.name))


def chips() -> list[nodes.Node]:
    """A section for each chip with everything that its documents give."""
    found: list[nodes.Node] = []
    for chip in by_vendor():
        rates = [
            (f"{named(peak.precision)}, {peak.engine}{', 2:4 sparse' if peak.sparse else ''}", peak.rate)
            for peak in chip.peaks
        ]
        others = [(named(name), entry) for name, entry in chip.fields.items()]
        call = nodes.paragraph("", "", nodes.literal("", f'Hardware.get("{chip.id}")'))
        found.append(section(f"chip-{chip.id}", chip.name, call, facts([*rates, *others])))
    return found


def all_links() -> list[nodes.Node]:
    """Links with the rate of one direction."""
    return [facts([(link.name, link.rate) for link in links()])]


def memory_levels() -> list[nodes.Node]:
    """A section for each memory hierarchy."""
    found: list[nodes.Node] = []
    for system in systems():
        title = "A server CPU" if system == "cpu" else Hardware.get(system).name
        rows = [
            (f"{named(level.name)}, {named(name)}", entry)
            for level in levels(system)
            for name, entry in level.fields.items()
        ]
        call = nodes.paragraph("", "", nodes.literal("", f'levels("{system}")'))
        found.append(section(f"levels-{system}", title, call, facts(rows)))
    return found


def systems() -> list[str]:
    """Chips and hosts whose memory levels are known."""
    return list(load_toml("memory_levels.toml"))


def energies() -> list[nodes.Node]:
    """A section for each basis, because energies of two bases do not mix."""
    found: list[nodes.Node] = []
    for basis in bases():
        rows = [(named(name), entry) for name, entry in basis.operations.items()]
        rows += [(f"{named(name)}, {bits_of(basis.bits[name])}", entry) for name, entry in basis.accesses.items()]
        about = nodes.paragraph("", "", nodes.literal("", f'basis("{basis.id}")'), nodes.Text(f", {basis.node}"))
        found.append(section(f"basis-{basis.id}", basis.title, about, facts(rows)))
    return found


def sizes() -> list[nodes.Node]:
    """Models whose authors print how many parameters they have."""
    return [facts([(f"{size.name}, {size.year}", size.parameters) for size in published_sizes().values()])]


def history() -> list[nodes.Node]:
    """The arithmetic of large training runs, and the parts of a decade of growth."""
    rows = [(f"training of {run.name}, {run.year}", run.compute) for run in training_runs().values()]
    return [facts([*rows, *((f"gain by {name}", part) for name, part in huang_parts().items())])]


def sources() -> list[nodes.Node]:
    """The documents that the tables above name, in alphabetical order."""
    rows = [entry for chip in Hardware.all() for entry in (*chip.fields.values(), *(p.rate for p in chip.peaks))]
    rows += [link.rate for link in links()]
    rows += [entry for name in systems() for level in levels(name) for entry in level.fields.values()]
    rows += [entry for b in bases() for entry in (*b.operations.values(), *b.accesses.values())]
    rows += [entry for size in published_sizes().values() for entry in (size.announced, size.parameters)]
    rows += [entry for run in training_runs().values() for entry in (run.announced, run.compute)]
    rows += huang_parts().values()
    listing = nodes.bullet_list()
    for source in sorted({row.source for row in rows}, key=lambda source: (source.publisher.lower(), source.title)):
        about = nodes.paragraph("", f"{source.publisher}, ")
        title = nodes.Text(source.title)
        about += nodes.reference("", "", title, refuri=source.address) if source.address else title
        about += nodes.Text(f" ({source.date})." + (f" Read in {source.read_in}." if source.read_in else ""))
        listing += nodes.list_item("", about, ids=[anchor(source)])
    return [listing]


PARTS: dict[str, Callable[[], list[nodes.Node]]] = {
    "overview": overview,
    "chips": chips,
    "links": all_links,
    "levels": memory_levels,
    "energies": energies,
    "sizes": sizes,
    "history": history,
    "sources": sources,
}


def named(key: str) -> str:
    """What the field calls a quantity; "fp16" and "int8 add" become "FP16" and "INT8 add"."""
    precision = PRECISION.match(key)
    if precision:
        return precision[0].upper() + key[precision.end() :]
    if key not in NAMES:
        raise ValueError(f"the quantity {key!r} of the data files has no name yet: add it to NAMES in {__name__}")
    return NAMES[key]


def bits_of(count: int) -> str:
    """A number of bits in words."""
    return "1 bit" if count == 1 else f"{count} bits"


def facts(rows: Iterable[Row]) -> nodes.table:
    """A table of sourced numbers: what, how much, under which condition, and where that is written."""
    body: list[list[Cell]] = []
    for name, entry in rows:
        place = nodes.inline("", f"{entry.source.publisher}, {entry.where}")
        source = nodes.reference("", "", place, refid=anchor(entry.source), internal=True)
        is_year = name == NAMES["announced"]
        value = f"{entry.value.m:.0f}" if is_year else shown(entry.value)
        body.append([name, nodes.strong("", value), "" if is_year else entry.condition, source])
    return table(COLUMNS, body, "course-facts")


_POWERS_FROM = 1e15
"""Numbers from here on are written with a power of ten."""
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def shown(value: Quantity) -> str:
    """A quantity as text: whole numbers with commas, whole KiB or MiB, powers of ten, at most five digits of others.

    A time has four digits: it is computed from clocks that are printed with no more.
    """
    if value.units == ureg.byte and value.m >= 1024 and value.m % 1024 == 0:
        value = value.to("KiB" if value.m % 1024**2 else "MiB")
    if value.m >= _POWERS_FROM:
        digits, power = f"{value.m:.3g}".split("e+")
        size = f"{digits} × 10{power.translate(_RAISED)}"
    elif value.m == int(value.m):
        size = f"{value.m:,.0f}"
    else:
        size = f"{value.m:,.4g}" if value.check("[time]") else f"{value.m:,.5g}"
    return f"{size} {value.units:~P}".strip()


def anchor(source: Source) -> str:
    """Where a document stands in the list of sources."""
    return f"source-{source.key}"


def section(identifier: str, title: str, *content: nodes.Node) -> nodes.section:
    """A section under the heading that the directive stands in."""
    return nodes.section("", nodes.title("", title), *content, ids=[identifier], names=[identifier])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("hardware-data", DataDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
