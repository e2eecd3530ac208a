"""The calculator of plans: what a chip holds, what goes over which link, and how long a training step takes."""

from typing import Any

from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys import Hardware, models, viz
from mlsys.formatting import fmt
from mlsys.models.training import ADAM_BYTES
from mlsys.scaling import (
    BlockShare,
    Cluster,
    Decoder,
    Fabric,
    Footprint,
    Plan,
    StepTime,
    fabric,
    footprint,
    run_of,
    sustained,
    train_step,
)
from mlsys.scaling.memory import OPTIMIZER_BYTES
from mlsys.scaling.step import OPTIMIZER_TRAFFIC, output_time

NODE = 8
"""Chips of a node."""
CLUSTERS = {
    "a100": ("a100-80gb-sxm", "nvlink-3", "infiniband-hdr"),
    "h100": ("h100-sxm", "nvlink-4", "infiniband-ndr"),
}
TENSOR = (1, 2, 4, 8)
MICROBATCHES = (1, 2, 4, 8)
RECOMPUTE = {"none": "nothing", "selective": "attention", "full": "every block"}
SHARDING = {
    0: "nothing",
    1: "optimizer",
    2: "optimizer and gradients",
    3: "optimizer, gradients and weights",
}
MOST = {"data": 4096, "pipeline": 128, "interleaving": 16, "batch": 100_000}
FIRST = {
    "model": "gpt3-175b",
    "cluster": "a100",
    "batch": 64,
    "data": 1,
    "tensor": 8,
    "pipeline": 8,
    "interleaving": 3,
    "microbatch": 1,
    "recompute": "selective",
    "sharding": 0,
}
WORK = ("products", "elementwise", "selective", "full", "output products", "output elementwise")
"""Seconds that the browser is given for a block, and for the output layer; it adds up the rest."""


def decoders() -> dict[str, tuple[str, Decoder]]:
    """Return what can be trained, by name, with the text of the list."""
    listed = {
        "llama2-7b": ("Llama 2 7B, 4,096 tokens", Decoder.of(models.llama2("7b"), 4096)),
        "llama2-70b": ("Llama 2 70B, 4,096 tokens", Decoder.of(models.llama2("70b"), 4096)),
    }
    for name in ("megatron-22b", "gpt3-175b", "turing-530b", "megatron-1t"):
        run = run_of(name)
        listed[name] = (f"{run.name}, 2,048 tokens", run.decoder)
    return listed


def cluster(name: str) -> Cluster:
    """Return the cluster of that name in the list."""
    chip, inside, between = CLUSTERS[name]
    return Cluster(sustained(Hardware.get(chip)), fabric(inside), fabric(between), NODE)


def plan_of(chosen: dict[str, Any]) -> Plan:
    """Return the plan of the controls; tensor groups also share what is between the products."""
    names = ("batch", "data", "tensor", "pipeline", "interleaving", "microbatch", "recompute", "sharding")
    return Plan(**{name: chosen[name] for name in names}, sequence=chosen["tensor"] > 1)


def computed(chosen: dict[str, Any]) -> tuple[Footprint, StepTime]:
    """Return what a chip holds and where the time goes, for the values of the controls."""
    decoder, plan = decoders()[chosen["model"]][1], plan_of(chosen)
    return footprint(decoder, plan), train_step(decoder, plan, cluster(chosen["cluster"]))


def content() -> Content:
    """The numbers and the fallback of the calculator."""
    held, step = computed(FIRST)
    room = Hardware.get(CLUSTERS[FIRST["cluster"]][0]).memory_capacity.m_as("GB")
    return Content(
        title="Which plan?",
        numbers={
            "node": NODE,
            "models": [_model(key, name, decoder) for key, (name, decoder) in decoders().items()],
            "clusters": [_cluster(key) for key in CLUSTERS],
            "tensor": TENSOR,
            "microbatches": MICROBATCHES,
            "recompute": list(RECOMPUTE.items()),
            "sharding": list(SHARDING.items()),
            "bytes": {"weights": ADAM_BYTES["weights"], "gradients": 4, "optimizer": OPTIMIZER_BYTES},
            "traffic": OPTIMIZER_TRAFFIC,
            "most": MOST,
            "first": FIRST,
        },
        picture=_picture,
        alt="Two horizontal bars for GPT-3 on 64 A100s, shared by tensor and pipeline parallelism, eight by eight. The "
        f"upper one is what a chip holds, {fmt(held.total.m_as('GB'), 0)} of {fmt(room, 0)} GB: half of it is "
        f"the optimizer. The lower one is the time of a step, {fmt(step.total.m_as('s'), 1)} s: seven tenths are "
        "products, less than a fifth is sums within the blocks.",
        tables=(_table(),),
    )


def _cluster(key: str) -> dict[str, Any]:
    made = cluster(key)
    acc = Hardware.get(CLUSTERS[key][0])

    def link(joined: Fabric) -> dict[str, Any]:
        return {
            "name": joined.name.removesuffix(" and switch"),
            "rate": joined.efficiency * joined.bandwidth,
            "start": joined.start_s,
            "step": joined.step_s,
            "sendRate": joined.send_efficiency * joined.bandwidth,
            "sendStart": joined.send_start_s,
        }

    return {
        "id": key,
        "name": f"{acc.name.removeprefix('NVIDIA ')}, {NODE} in a node",
        "memory": acc.memory_capacity.m_as("byte"),
        "bandwidth": made.chip.bandwidth_per_s,
        "peak": acc.peak("fp16").m_as("flop/s"),
        "inside": link(made.inside),
        "between": link(made.between),
    }


def _model(key: str, name: str, decoder: Decoder) -> dict[str, Any]:
    block = decoder.block
    kept = {
        str(tensor): [
            block.kept_bytes(decoder.tokens, recompute=how, tensor_parallel=tensor, sequence_parallel=tensor > 1).m_as(
                "byte"
            )
            for how in RECOMPUTE
        ]
        for tensor in TENSOR
    }
    return {
        "id": key,
        "name": name,
        "layers": decoder.layers,
        "tokens": decoder.tokens,
        "width": block.width,
        "block": decoder.attention_params + decoder.mlp_params,
        "embedding": decoder.embedding_params,
        "flops": decoder.model_flops(1),
        "kept": kept,
        "ends": block.ends_kept_bytes(decoder.tokens, vocabulary=decoder.vocabulary).m_as("byte"),
        "work": {name: _work(decoder, cluster(name)) for name in CLUSTERS},
    }


def _work(decoder: Decoder, made: Cluster) -> dict[str, dict[str, list[float]]]:
    """Seconds of a microbatch, in the order of `WORK`, by the chips of a tensor group and its sequences."""

    def seconds(share: BlockShare) -> list[float]:
        def of(ops: Any) -> float:
            return float(made.chip.time(ops).m_as("second"))

        both = (*share.forward, *share.backward)
        output = output_time(decoder, share, made.chip)
        return [
            of(op for op in both if op.engine == "tensor"),
            of(op for op in both if op.engine == "vector"),
            of(share.repeated("selective")),
            of(share.forward),
            output["products"],
            output["elementwise"],
        ]

    return {
        str(tensor): {
            str(many): [
                float(f"{value:.9g}")
                for value in seconds(
                    BlockShare(
                        decoder.block, decoder.tokens, many, tensor_parallel=tensor, sequence_parallel=tensor > 1
                    )
                )
            ]
            for many in MICROBATCHES
        }
        for tensor in TENSOR
    }


def _table() -> Table:
    """Some plans for GPT-3 on 64 A100s."""
    cases = (
        ("tensor 8, pipeline 8, 3 groups of layers", {}),
        ("tensor 8, pipeline 8", {"interleaving": 1}),
        ("tensor 4, pipeline 16, 3 groups of layers", {"tensor": 4, "pipeline": 16}),
        ("data 8, tensor 8, everything sharded", {"data": 8, "pipeline": 1, "interleaving": 1, "sharding": 3}),
        ("data 64, everything sharded, blocks computed again",
         {"data": 64, "tensor": 1, "pipeline": 1, "interleaving": 1, "sharding": 3, "recompute": "full"}),
    )  # fmt: skip
    rows = []
    for label, changed in cases:
        held, step = computed({**FIRST, **changed})
        between = fmt(step.exchanged.m_as("s"), 1)
        rows.append((label, f"{held.total.m_as('GB'):.0f} GB", f"{step.total.m_as('s'):.1f} s", f"{between} s"))
    head = ("plan", "a chip holds", "time of a step", "of it exchanges")
    return Table("GPT-3 175B on 64 A100s of 80 GB, 64 sequences of 2,048 tokens in a step", (head, *rows))


def _picture() -> Figure:
    import matplotlib.pyplot as plt

    viz.apply_style()
    fig, axes = plt.subplots(2, 1, figsize=(6.6, 3.6), layout="constrained")
    held, step = computed(FIRST)
    room = Hardware.get(CLUSTERS[FIRST["cluster"]][0]).memory_capacity.m_as("GB")
    sizes = {name: getattr(held, name).m_as("GB") for name in ("weights", "gradients", "optimizer", "activations")}
    _bar(axes[0], sizes, "GB on a chip")
    axes[0].axvline(room, color=viz.COLORS["primary"], linestyle="--")
    axes[0].set_xlim(0, 1.05 * room)
    _bar(axes[1], {name: part.m_as("s") for name, part in step.parts.items() if part.m}, "seconds of a step")
    return fig


def _bar(ax: Any, sizes: dict[str, float], name: str) -> None:
    tones = ("BlueLine", "GreenLine", "OrangeLine", "RedLine", "VioletLine", "BrownLine", "grid")
    start = 0.0
    for tone, (label, size) in zip(tones, sizes.items(), strict=False):
        ax.barh(0, size, 0.6, start, color=viz.COLORS[tone], label=label)
        start += size
    ax.set(yticks=[], xlabel=name)
    ax.grid(visible=False, axis="y")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=4, frameon=False)
