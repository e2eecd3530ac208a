"""Streams of a GPU, simulated: kernels and copies in queues, and when each of them runs.

A stream is a queue: its operations run one after the other. Operations of different streams may run at the same time,
as far as the resources allow. These are the rules, which follow the CUDA Programming Guide:

- The host issues the operations one after the other; each takes `issue_s` of its time.
- An operation starts when it has been issued, the operation before it in its stream has ended, and the events that
  its stream waits for have been recorded.
- Each direction of the host link has one copy engine, which serves copies in the order in which they become ready. A
  copy takes `copy_latency_s` + bytes / `link_bandwidth`.
- The blocks of a kernel run on SMs. A block uses a share of an SM, such as 1/2 where two fit, for `block_s`. Kernels
  give out their blocks in the order in which the kernels become ready. Only when all blocks of one have started may
  those of the next use what is left.

Not modeled: kernels that slow each other down by sharing bandwidth, clocks that fall with power, and copies from
pageable memory, for which the host waits.

>>> from mlsys.runtime.streams import Copy, Gpu, Kernel, simulate
>>> gpu = Gpu(sms=100, link_bandwidth=50e9)
>>> plan = [
...     Copy("a", "first", bytes=50_000_000), Kernel("f", "first", blocks=100, block_s=2e-3),
...     Copy("b", "second", bytes=50_000_000), Kernel("g", "second", blocks=100, block_s=2e-3),
... ]
>>> round(1e3 * simulate(plan, gpu).total_s, 3)
5.0
"""

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from mlsys.core.arguments import non_negative, one_of, positive_int
from mlsys.errors import InvalidValue, UnknownName

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LANES = ("to device", "SMs", "to host")
"""What an operation uses, in the order of the figure: a copy engine for each direction, and the SMs."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy between the host's pinned memory and the device.

    Attributes:
        name: What the copy is called in the timeline.
        stream: The queue that it is put into.
        bytes: How much is copied.
        direction: "to device" or "to host".
    """

    name: str
    stream: str
    bytes: int
    direction: str = "to device"


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of equal blocks.

    Attributes:
        name: What the kernel is called in the timeline.
        stream: The queue that it is put into.
        blocks: How many blocks it has.
        block_s: How long one block runs, in seconds.
        share: The part of an SM that one block uses, from above 0 to 1: 1 / (blocks that fit on an SM).
    """

    name: str
    stream: str
    blocks: int
    block_s: float
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Record:
    """An event, recorded when everything put into its stream before has ended."""

    event: str
    stream: str


@dataclass(frozen=True, slots=True)
class Wait:
    """A stop of a stream until an event has been recorded."""

    event: str
    stream: str


Operation: TypeAlias = Copy | Kernel | Record | Wait


@dataclass(frozen=True, slots=True)
class Gpu:
    """What the operations share.

    Attributes:
        sms: How many SMs there are.
        link_bandwidth: Bytes per second of the host link, in each direction.
        copy_latency_s: Seconds that a copy takes besides its bytes.
        issue_s: Seconds of the host's time for one operation.
    """

    sms: int
    link_bandwidth: float
    copy_latency_s: float = 0.0
    issue_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Bar:
    """An operation in the timeline; of a kernel, from its first block's start to its last block's end.

    Attributes:
        name: The operation's name.
        stream: The queue that it came from.
        lane: One of `LANES`.
        start_s: When it started, in seconds since the host began.
        end_s: When it ended.
        busy_s: Seconds for which it kept its lane busy, of a kernel weighted by the share of all SMs that it had.
    """

    name: str
    stream: str
    lane: str
    start_s: float
    end_s: float
    busy_s: float


@dataclass(frozen=True)
class Timeline:
    """What ran when.

    Attributes:
        bars: Copies and kernels in the order in which they were issued.
    """

    bars: tuple[Bar, ...]

    @property
    def total_s(self) -> float:
        """When the last operation ended."""
        return max((bar.end_s for bar in self.bars), default=0.0)

    def __getitem__(self, name: str) -> Bar:
        """The operation of that name, the first if there are several.

        Raises:
            UnknownName: No operation has that name.
        """
        for bar in self.bars:
            if bar.name == name:
                return bar
        raise UnknownName.of("operation", name, {bar.name for bar in self.bars})

    def busy(self, lane: str) -> float:
        """Share of the total time for which a lane was busy; of the SMs, the mean share of them in use."""
        one_of("lane", lane, LANES)
        worked = sum(bar.busy_s for bar in self.bars if bar.lane == lane)
        return worked / self.total_s if self.total_s else 0.0

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the lanes one above the other, with a color for each stream."""
        return _draw(self, ax)


def simulate(operations: Iterable[Operation], gpu: Gpu) -> Timeline:
    """Return what runs when if the host issues `operations` in this order.

    Raises:
        InvalidValue: A count, share, size or time out of its range, two events of one name, or a wait for an event
            that is not recorded earlier in the list (CUDA would not wait for it at all); the message names it.
    """
    given = list(operations)
    _refuse_bad_values(given, gpu)
    return _Simulation(given, gpu).run()


def _refuse_bad_values(operations: Sequence[Operation], gpu: Gpu) -> None:
    positive_int("sms", gpu.sms)
    for name, value in (("copy_latency_s", gpu.copy_latency_s), ("issue_s", gpu.issue_s)):
        non_negative(name, value)
    if non_negative("link_bandwidth", gpu.link_bandwidth) == 0:
        raise InvalidValue("link_bandwidth is 0; a copy would never end: give bytes per second")
    recorded: set[str] = set()
    for one in operations:
        if isinstance(one, Copy):
            non_negative(f"bytes of {one.name!r}", one.bytes)
            one_of(f"direction of {one.name!r}", one.direction, ("to device", "to host"))
        elif isinstance(one, Kernel):
            positive_int(f"blocks of {one.name!r}", one.blocks)
            non_negative(f"block_s of {one.name!r}", one.block_s)
            if not 0 < one.share <= 1:
                raise InvalidValue(f"share of {one.name!r} is {one.share}; it must be above 0 and at most 1")
        elif isinstance(one, Record):
            if one.event in recorded:
                raise InvalidValue(f"the event {one.event!r} is recorded twice; give each event its own name")
            recorded.add(one.event)
        elif one.event not in recorded:
            raise InvalidValue(
                f"stream {one.stream!r} waits for {one.event!r}, which is not recorded before: CUDA would not wait "
                f"at all; put the record earlier. Recorded so far: {', '.join(sorted(recorded)) or 'nothing'}"
            )


class _Simulation:
    """The state of one run: queues of the streams, of the copy engines and of the SMs, and what ends next."""

    def __init__(self, operations: Sequence[Operation], gpu: Gpu) -> None:
        self.operations, self.gpu = operations, gpu
        self.now = 0.0
        self.streams: dict[str, deque[int]] = {}
        self.running: dict[str, int] = {}  # stream -> operation that it has handed on and that has not ended
        self.recorded: set[str] = set()
        self.engines: dict[str, deque[int]] = {"to device": deque(), "to host": deque()}
        self.copying: dict[str, int] = {}
        self.free = float(gpu.sms)
        self.kernels: deque[int] = deque()
        self.waiting: dict[int, int] = {}  # kernel -> blocks that have not started
        self.unfinished: dict[int, int] = {}  # kernel -> blocks that have not ended
        self.started: dict[int, float] = {}
        self.ended: dict[int, float] = {}
        self.agenda: list[tuple[float, int, str, int, int]] = []

    def run(self) -> Timeline:
        for number in range(len(self.operations)):
            self._at((number + 1) * self.gpu.issue_s, "issued", number)
        while self.agenda:
            self.now = self.agenda[0][0]
            while self.agenda and self.agenda[0][0] == self.now:
                _, _, what, number, blocks = heapq.heappop(self.agenda)
                self._happen(what, number, blocks)
            self._hand_on()
            self._start_copies()
            self._start_blocks()
        return Timeline(tuple(self._bar(number) for number in sorted(self.ended)))

    def _at(self, time: float, what: str, number: int, blocks: int = 0) -> None:
        heapq.heappush(self.agenda, (time, len(self.started) + len(self.agenda), what, number, blocks))

    def _happen(self, what: str, number: int, blocks: int) -> None:
        one = self.operations[number]
        if what == "issued":
            self.streams.setdefault(one.stream, deque()).append(number)
        elif isinstance(one, Copy):
            del self.copying[one.direction]
            self._end(number)
        elif isinstance(one, Kernel):
            self.free += blocks * one.share
            self.unfinished[number] -= blocks
            if not self.unfinished[number]:
                self._end(number)

    def _end(self, number: int) -> None:
        self.ended[number] = self.now
        del self.running[self.operations[number].stream]

    def _hand_on(self) -> None:
        """Let every stream go on as far as it can; an event that one records may free another."""
        moved = True
        while moved:
            moved = False
            ready = [(queue[0], stream) for stream, queue in self.streams.items() if queue]
            for number, stream in sorted(ready):
                one = self.operations[number]
                if stream in self.running or (isinstance(one, Wait) and one.event not in self.recorded):
                    continue
                self.streams[stream].popleft()
                moved = True
                if isinstance(one, Record):
                    self.recorded.add(one.event)
                elif isinstance(one, Copy):
                    self.running[stream] = number
                    self.engines[one.direction].append(number)
                elif isinstance(one, Kernel):
                    self.running[stream] = number
                    self.kernels.append(number)
                    self.waiting[number] = self.unfinished[number] = one.blocks

    def _start_copies(self) -> None:
        for direction, queue in self.engines.items():
            if queue and direction not in self.copying:
                number = self.copying[direction] = queue.popleft()
                self.started[number] = self.now
                copy = self.operations[number]
                assert isinstance(copy, Copy)
                self._at(self.now + self._copy_s(copy), "ended", number)

    def _start_blocks(self) -> None:
        while self.kernels:
            number = self.kernels[0]
            kernel = self.operations[number]
            assert isinstance(kernel, Kernel)
            blocks = min(self.waiting[number], int(self.free / kernel.share + 1e-9))
            if blocks:
                self.started.setdefault(number, self.now)
                self.free -= blocks * kernel.share
                self.waiting[number] -= blocks
                self._at(self.now + kernel.block_s, "ended", number, blocks)
            if self.waiting[number]:
                return
            self.kernels.popleft()

    def _copy_s(self, copy: Copy) -> float:
        return self.gpu.copy_latency_s + copy.bytes / self.gpu.link_bandwidth

    def _bar(self, number: int) -> Bar:
        one = self.operations[number]
        assert isinstance(one, Copy | Kernel)
        if isinstance(one, Copy):
            lane, busy_s = one.direction, self._copy_s(one)
        else:
            lane, busy_s = "SMs", one.blocks * one.share * one.block_s / self.gpu.sms
        return Bar(one.name, one.stream, lane, self.started[number], self.ended[number], busy_s)


def _draw(timeline: Timeline, ax: "Axes | None") -> "Axes":
    """Draw `timeline` into `ax`, or into a new figure, and return the axes."""
    from mlsys import viz

    lanes = [lane for lane in LANES if any(bar.lane == lane for bar in timeline.bars)]
    streams = list(dict.fromkeys(bar.stream for bar in timeline.bars))
    rows = _rows(timeline)
    depth = {
        lane: 1 + max(rows[place] for place, bar in enumerate(timeline.bars) if bar.lane == lane) for lane in lanes
    }
    if ax is None:
        _, ax, _, _ = viz.setup_plot(figsize=(5.0, 0.9 + 0.42 * sum(depth.values())))
    tops, y = {}, 0.0
    for lane in lanes:
        tops[lane] = y
        y += depth[lane] + 0.35
    fills = ("BlueL", "OrangeL", "GreenL", "VioletL", "RedL", "BrownL")
    lines = ("BlueLine", "OrangeLine", "GreenLine", "VioletLine", "RedLine", "BrownLine")
    for place, bar in enumerate(timeline.bars):
        color = streams.index(bar.stream) % len(fills)
        bottom, width = tops[bar.lane] + rows[place], 1e3 * (bar.end_s - bar.start_s)
        ax.barh(
            bottom + 0.45, width, 0.86, 1e3 * bar.start_s,
            color=viz.COLORS[fills[color]], edgecolor=viz.COLORS[lines[color]],
        )  # fmt: skip
        ax.text(1e3 * bar.start_s + width / 2, bottom + 0.45, bar.name, ha="center", va="center", fontsize=9)
    ax.set_yticks([tops[lane] + depth[lane] / 2 - 0.05 for lane in lanes], lanes)
    ax.set(ylim=(y, -0.25), xlim=(0, 1.02e3 * timeline.total_s or 1), xlabel="time, ms")
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False, axis="y")
    return ax


def _rows(timeline: Timeline) -> list[int]:
    """For each bar, the row of its lane in which it does not cover another."""
    ends: dict[str, list[float]] = {lane: [] for lane in LANES}
    rows = [0] * len(timeline.bars)
    for place, bar in sorted(enumerate(timeline.bars), key=lambda found: found[1].start_s):
        free = ends[bar.lane]
        row = next((row for row, end in enumerate(free) if end <= bar.start_s + 1e-12), len(free))
        if row == len(free):
            free.append(0.0)
        free[row] = bar.end_s
        rows[place] = row
    return rows
