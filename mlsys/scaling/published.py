"""Published measurements that the models of this package are held to: training runs, and times of collectives.

>>> run = run_of("gpt3-175b")
>>> run.decoder.layers, run.plan("selective").pipeline, run.measured["selective"]
(96, 8, <Quantity(13.75, 'second')>)
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from mlsys.core.arguments import one_of
from mlsys.core.sourced import Catalog, Cited, Number, data_file, data_folder
from mlsys.models import Block
from mlsys.scaling.decoder import Decoder
from mlsys.scaling.plan import Plan
from mlsys.units import Quantity, ureg


@dataclass(frozen=True)
class Run:
    """A training run on NVIDIA's cluster Selene, with eight A100s of 80 GB in a node.

    Attributes:
        name: of the model.
        decoder: its shape.
        batch: sequences of a step.
        microbatch: sequences that pass together.
        tensor: chips that share a block.
        pipeline: stages.
        interleaving: groups of layers on each stage.
        measured: time of a step, by what is computed again: "full" or "selective".
    """

    name: str
    decoder: Decoder
    batch: int
    microbatch: int
    tensor: int
    pipeline: int
    interleaving: int
    measured: Mapping[str, Quantity]

    def plan(self, recompute: str, data: int = 1) -> Plan:
        """Return the plan of the run; selective recomputation was measured with sequence parallelism.

        Args:
            recompute: "full" or "selective".
            data: data groups, each of which trains on `batch` sequences.

        Raises:
            InvalidValue: if `recompute` has another value, or `data` is not a positive integer.
        """
        return Plan(
            batch=data * self.batch,
            data=data,
            tensor=self.tensor,
            pipeline=self.pipeline,
            interleaving=self.interleaving,
            sequence=one_of("recompute", recompute, self.measured) == "selective",
            microbatch=self.microbatch,
            recompute=recompute,
        )


class _RunEntry(Cited, frozen=True, kw_only=True):
    name: str
    width: int
    heads: int
    layers: int
    tokens: int
    vocabulary: int
    batch: int
    microbatch: int
    tensor: int
    pipeline: int
    interleaving: int
    full: Number
    selective: Number


def _run(name: str, entry: _RunEntry) -> Run:
    block = Block(entry.width, entry.heads, entry.heads, 4 * entry.width)
    return Run(
        entry.name,
        Decoder(block, entry.layers, entry.tokens, entry.vocabulary),
        entry.batch,
        entry.microbatch,
        entry.tensor,
        entry.pipeline,
        entry.interleaving,
        {"full": entry.full.sourced.value, "selective": entry.selective.sourced.value},
    )


RUNS = Catalog("run", lambda: data_file("training_runs.toml", dict[str, _RunEntry]), _run)
"""The runs, smallest model first."""


def run_of(name: str) -> Run:
    """Return a run by its name: "megatron-22b", "gpt3-175b", "turing-530b" or "megatron-1t".

    Raises:
        UnknownName: with the nearest name and all of them.

    >>> run_of("megatron-1t").plan("full").chips
    512
    """
    return RUNS.get(name)


def runs() -> tuple[Run, ...]:
    """Return every run, smallest model first.

    >>> [round(run.decoder.params / 1e9) for run in runs()]
    [22, 175, 530, 1008]
    """
    return RUNS.all()


@dataclass(frozen=True)
class Timed:
    """A measured operation on a link.

    Attributes:
        link: id of the link, as in `mlsys.scaling.network`.
        operation: "all-reduce" or "send".
        chips: how many took part.
        size: bytes of one chip's buffer.
        time: median time of the kernel.
        source: file and commit.
    """

    link: str
    operation: str
    chips: int
    size: int
    time: Quantity
    source: str


@cache
def timed() -> tuple[Timed, ...]:
    """Return the times of collectives in Vidur's profiles at sizes near powers of two from 256 KiB to 64 MiB.

    Source: Agrawal et al., Vidur: A Large-Scale Simulation Framework for LLM Inference, MLSys 2024, and its data.

    >>> len([one for one in timed() if one.link == "nvlink-4" and one.operation == "all-reduce"])
    27
    """
    text = data_folder().joinpath("collective_times.csv").read_text(encoding="utf-8")
    return tuple(
        Timed(
            row["link"],
            row["operation"],
            int(row["devices"]),
            int(row["bytes"]),
            ureg.Quantity(float(row["median_us"]), "us"),
            row["source"],
        )
        for row in csv.DictReader(text.splitlines())
    )
