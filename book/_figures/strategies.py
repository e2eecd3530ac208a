"""The chapter on mapping strategies: networks as groups of layers, what each way to map a group takes, and figures."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from matplotlib.patches import FancyBboxPatch

from mlsys import viz
from mlsys.core.dtypes import bytes_per_element
from mlsys.dataflow.machines import DTYPE, Machine, Product
from mlsys.measure.records import Row
from mlsys.models.convolutional import build_resnet50
from mlsys.models.images import ImageNetwork
from mlsys.models.shapes import shapes
from mlsys.ops import conv_output_size

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""
FLOWS = {"ws": "weights stay", "os": "sums stay", "is": "inputs stay"}
SMALL = Machine("a small chip, assumed", peak=8.192e12, arrays=1, rows=64, cols=64, fill=190, near_bytes=2**18,
                bandwidth=40e9)  # fmt: skip
"""One array of 64 x 64 at 1 GHz, 256 KiB near it, 40 GB/s: makers of chips for phones do not print these numbers."""
SIZE = bytes_per_element(DTYPE)


@dataclass(frozen=True)
class Attention:
    """Attention of all layers, whose scores may leave the chip or not.

    Attributes:
        layers: blocks of the network.
        groups: heads of all sequences.
        queries: queries of a sequence.
        keys: keys of a sequence.
        dim: numbers of a query or key.
    """

    layers: int
    groups: int
    queries: int
    keys: int
    dim: int

    @property
    def products(self) -> tuple[Product, Product]:
        """The two products of a layer."""
        return (
            Product("scores", self.queries, self.keys, self.dim, self.groups, together=True),
            Product("mix", self.queries, self.dim, self.keys, self.groups, together=True),
        )

    @property
    def outer(self) -> int:
        """Bytes of queries, keys, values and results of a layer."""
        return int(SIZE * self.groups * self.dim * 2 * (self.queries + self.keys))

    @property
    def scores(self) -> int:
        """Bytes of a layer's scores."""
        return int(SIZE * self.groups * self.queries * self.keys)


@dataclass(frozen=True)
class Network:
    """A network as groups of layers that are mapped alike.

    Attributes:
        name: the network, and what it works on.
        groups: products by the name of their group, in order.
        attention: its attention, if it has any.
        apart: bytes of normalizations, activations and sums, each a kernel of its own.
        joined: bytes that they add if activations and sums are done by the product before them.
    """

    name: str
    groups: Mapping[str, tuple[Product, ...]]
    attention: Attention | None
    apart: int
    joined: int

    @property
    def flops(self) -> int:
        """FLOPs of all products, attention included."""
        found = sum(product.flops for group in self.groups.values() for product in group)
        if self.attention:
            found += self.attention.layers * sum(product.flops for product in self.attention.products)
        return found


@dataclass(frozen=True)
class Cost:
    """What a group takes in one mapping: seconds of arithmetic, seconds of bytes, seconds in all, bytes, and FLOPs."""

    compute_s: float
    memory_s: float
    time_s: float
    moved: int
    flops: int


def vit(images: int) -> Network:
    """Return ViT-B/16 of Dosovitskiy et al. (ICLR 2021, Table 1) on images of 224 x 224 pixels."""
    layers, width, heads, hidden, patch, side, classes = 12, 768, 12, 3072, 16, 224, 1000
    patches = (side // patch) ** 2
    rows = images * (patches + 1)  # and a token for the class
    groups = {
        "patches": (Product("patches", images * patches, width, 3 * patch**2),),
        **_block(layers, rows, width, hidden),
        "classifier": (Product("classifier", images, classes, width),),
    }
    attention = Attention(layers, images * heads, patches + 1, patches + 1, width // heads)
    return Network(f"ViT-B/16, {images} image{'s' * (images > 1)}", groups, attention,
                   *_rowwise(layers, rows, width, hidden))  # fmt: skip


def gpt2_xl(batch: int, tokens: int, *, decode: bool) -> Network:
    """Return GPT-2 XL on prompts of so many tokens, or on one new token after as many."""
    family = shapes().gpt2
    size, heads = family.sizes["xl"], family.sizes["xl"].width // family.head_dim
    hidden = family.mlp_ratio * size.width
    queries = 1 if decode else tokens
    groups = {
        **_block(size.layers, batch * queries, size.width, hidden),
        "classifier": (Product("logits", batch * queries, family.vocabulary, size.width),),
    }
    name = f"GPT-2 XL, {'decode' if decode else 'prefill'} for {batch}"
    attention = Attention(size.layers, batch * heads, queries, tokens, family.head_dim)
    return Network(name, groups, attention, *_rowwise(size.layers, batch * queries, size.width, hidden))


def _block(layers: int, rows: int, width: int, hidden: int) -> dict[str, tuple[Product, ...]]:
    projections = (Product("queries, keys, values", rows, 3 * width, width, layers), Product("projection", rows, width,
                   width, layers))  # fmt: skip
    mlp = Product("MLP, first", rows, hidden, width, layers), Product("MLP, second", rows, width, hidden, layers)
    return {"projections": projections, "MLP": mlp}


def _rowwise(layers: int, rows: int, width: int, hidden: int) -> tuple[int, int]:
    """Bytes of the normalizations, sums and activations of a transformer: apart, and joined to products."""
    row = int(SIZE * rows * width)
    norms = (2 * layers + 1) * 2 * row
    apart = norms + layers * (2 * 3 * row + int(2 * SIZE * rows * hidden))
    return apart, norms + layers * 2 * row  # a sum still reads its residual


def resnet50(images: int) -> Network:
    """Return ResNet-50, its convolutions as products of windows and filters, which no kernel copies."""
    shape = shapes().resnet50
    net = ImageNetwork(n=images, c=shape.channels, h=shape.image, w=shape.image, dtype=DTYPE)
    build_resnet50(net)
    groups: dict[str, list[Product]] = {"7 × 7": [], "1 × 1": [], "3 × 3": []}
    for one in net.conv_sizes:
        kernel, padding = int(one.kernel), int(one.padding)  # type: ignore[arg-type]
        side = conv_output_size(one.h, kernel, one.stride, padding)
        product = Product(f"{kernel} x {kernel}", images * side * side, one.c_out, one.c * kernel**2)
        groups[f"{kernel} × {kernel}"].append(product)
    groups["classifier"] = [Product("classifier", images, shape.classes, shape.widths[-1] * shape.expansion)]
    small = {part: [op for op in net.ops if op.name.split(".")[-1].startswith(part)] for part in ("relu", "add")}
    apart = sum(op.read_count + op.write_count for ops in small.values() for op in ops)
    joined = sum(op.write_count for op in small["add"])  # of a sum, the read of the shortcut remains
    named = {name: tuple(products) for name, products in groups.items()}
    return Network(f"ResNet-50, {images} images", named, None, int(apart), int(joined))


@cache
def networks() -> dict[str, Network]:
    """The networks of the interactive figure."""
    return {
        "vit32": vit(32),
        "vit1": vit(1),
        "resnet50": resnet50(32),
        "prefill": gpt2_xl(1, 512, decode=False),
        "decode1": gpt2_xl(1, 512, decode=True),
        "decode64": gpt2_xl(64, 512, decode=True),
    }


@cache
def machines() -> dict[str, Machine]:
    """The three chips."""
    return {"h200": Machine.of("h200"), "tpu-v4": Machine.of("tpu-v4"), "small": SMALL}


def group_cost(machine: Machine, products: Iterable[Product], flow: str) -> Cost:
    """Return what products take one after the other, when the same operand stays in all of them."""
    products = tuple(products)
    found = [machine.map(product, flow) for product in products]
    return Cost(sum(one.compute_s for one in found), sum(one.memory_s for one in found),
                sum(one.time_s for one in found), sum(one.moved for one in found),
                sum(product.flops for product in products))  # fmt: skip


def attention_cost(machine: Machine, attention: Attention, flow: str, *, fused: bool) -> Cost:
    """Return what attention takes: as three kernels whose scores leave the chip, or as one.

    A kernel takes the longer of arithmetic and bytes. The softmax's arithmetic is left out.
    """
    computes = [machine.map(product, flow).compute_s for product in attention.products]
    outer, scores = attention.outer, attention.scores
    if fused:
        kernels = [(sum(computes), outer)]
    else:
        # queries and keys in, scores out; scores in and out; scores and values in, results out
        kernels = [(computes[0], outer // 2 + scores), (0.0, 2 * scores), (computes[1], outer // 2 + scores)]
    times = [(compute, moved / machine.bandwidth) for compute, moved in kernels]
    layers = attention.layers
    return Cost(layers * sum(computes), layers * sum(memory for _, memory in times),
                layers * sum(max(pair) for pair in times), layers * sum(moved for _, moved in kernels),
                layers * sum(product.flops for product in attention.products))  # fmt: skip


def choices(machine: Machine, network: Network) -> dict[str, dict[str, Cost]]:
    """Return, for each group of a network, what each way to map it takes on a chip."""
    found = {name: {flow: group_cost(machine, group, flow) for flow in FLOWS} for name, group in network.groups.items()}
    if network.attention:
        found["attention"] = {
            f"{flow}-{'fused' if fused else 'apart'}": attention_cost(machine, network.attention, flow, fused=fused)
            for fused in (False, True)
            for flow in FLOWS
        }
    rest = {}
    for way, moved in (("apart", network.apart), ("joined", network.joined)):
        seconds = moved / machine.bandwidth
        rest[way] = Cost(0.0, seconds, seconds, moved, 0)
    found["the rest"] = rest
    return found


def best(options: Mapping[str, Cost]) -> str:
    """Return the way that takes the least time; of ways within a thousandth of it, the first."""
    least = min(cost.time_s for cost in options.values())
    return next(name for name, cost in options.items() if cost.time_s <= 1.001 * least)


Rows = Mapping[tuple[int, ...], Row]


def resnet_steps(images: int, alone: Rows, joined: Rows) -> dict[str, tuple[float, float]]:
    """Add up a record's rows over all convolutions of ResNet-50: seconds of convolutions, and of bias and ReLU beyond.

    Args:
        images: images of a batch.
        alone: rows of convolutions by their sizes.
        joined: rows of convolutions with bias and ReLU.
    """
    counts = layer_counts(images)

    def total(rows: Rows, peer: str) -> float:
        return sum(count * rows[sizes].reference_s[peer] for sizes, count in counts.items())

    first, last = total(alone, "cuDNN channels first"), total(alone, "cuDNN")
    return {
        "channels first,\nthree kernels": (first, total(joined, "cuDNN channels first") - first),
        "channels last,\nthree kernels": (last, total(joined, "cuDNN") - last),
        "channels last,\none kernel": (last, total(joined, "cuDNN fused") - last),
    }


@cache
def layer_counts(images: int) -> dict[tuple[int, ...], int]:
    """How often each different convolution of ResNet-50 occurs, by its sizes in the order of a record's shape."""
    shape = shapes().resnet50
    net = ImageNetwork(n=images, c=shape.channels, h=shape.image, w=shape.image, dtype=DTYPE)
    build_resnet50(net)
    found: dict[tuple[int, ...], int] = {}
    for one in net.conv_sizes:
        kernel = int(one.kernel)  # type: ignore[arg-type]
        sizes = (one.n, one.c, one.h, one.w, one.c_out, kernel, kernel, one.stride)
        found[sizes] = found.get(sizes, 0) + 1
    return found


def colored(parts: Sequence[tuple[str, str, str]]) -> None:
    """Draw the parts of a vision transformer from top to bottom, each with how it is mapped, colored by the kind.

    Args:
        parts: name, mapping, and kind: "product", "attention" or "rows" of each part.
    """
    tones = {"product": "Blue", "attention": "Orange", "rows": "Green"}
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 0.62 * len(parts) + 0.2))
    for place, (name, mapping, kind) in enumerate(parts):
        box = FancyBboxPatch((0.03, place + 0.13), 0.94, 0.62, boxstyle="round,pad=0.02", linewidth=1.3,
                             facecolor=colors[f"{tones[kind]}L"], edgecolor=colors[f"{tones[kind]}Line"])  # fmt: skip
        ax.add_patch(box)
        ax.text(0.05, place + 0.44, name, va="center", weight="bold", color=colors[f"{tones[kind]}Line"])
        ax.text(0.45, place + 0.44, mapping, va="center", fontsize=9)
        if place:
            ax.annotate("", (0.2, place + 0.11), (0.2, place - 0.22),
                        arrowprops={"arrowstyle": "-|>", "color": colors["primary"], "lw": 1.2})  # fmt: skip
    ax.set(xlim=(0, 1), ylim=(len(parts), 0))
    ax.axis("off")


def chips(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    """Draw the utilization that each mapping reaches, a panel for each chip and a row of bars for each batch.

    Args:
        found: utilizations by the chip's name, the batch's name and the dataflow.
    """
    fig, axes, colors, _ = viz.setup_plot(figsize=(WIDTH, 1.35 * len(found) + 0.7))
    axes.remove()
    shades = {"ws": "BlueLine", "os": "OrangeLine", "is": "GreenLine"}
    panels = fig.subplots(len(found), 1, sharex=True)
    for ax, (chip, batches) in zip(panels, found.items(), strict=True):
        for place, values in enumerate(batches.values()):
            top = max(values.values())
            for shift, (flow, value) in enumerate(values.items()):
                y = place + 0.27 * (shift - 1)
                label = FLOWS[flow] if place == 0 and ax is panels[0] else None
                ax.barh(y, 100 * value, 0.25, color=colors[shades[flow]], label=label)
                ax.text(100 * value + 1, y, f"{100 * value:.0f}{' ←' if value == top else ''}", va="center", fontsize=8)
        ax.set_yticks(range(len(batches)), list(batches))
        ax.set_title(chip, fontsize=10, loc="left")
        ax.invert_yaxis()
        ax.grid(visible=False, axis="y")
    panels[-1].set(xlim=(0, 108), xlabel="percent of the chip's peak")
    fig.legend(loc="outside upper center", ncols=3, columnspacing=1.2, handletextpad=0.5)


def ladder(steps: Mapping[str, tuple[float, float]], least_s: float) -> None:
    """Draw the time of ResNet-50's convolutions with bias and ReLU after each change, and their least time."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.5))
    for place, (conv, rest) in enumerate(steps.values()):
        ax.barh(place, 1e3 * conv, 0.55, color=colors["BlueLine"], label="convolutions" if place == 0 else None)
        ax.barh(place, 1e3 * rest, 0.55, left=1e3 * conv, color=colors["OrangeLine"],
                label="bias and ReLU" if place == 0 else None)  # fmt: skip
        ax.text(1e3 * (conv + rest) + 0.05, place, f"{1e3 * (conv + rest):.2f} ms", va="center")
    ax.axvline(1e3 * least_s, color=colors["primary"], linestyle="--", linewidth=1.3)
    ax.text(1e3 * least_s + 0.05, 2.5, "at the roofs", va="center", fontsize=9)
    ax.set_yticks(range(len(steps)), list(steps))
    ax.set(xlabel="ms for 53 layers", xlim=(0, 5.4), ylim=(2.75, -0.5))
    ax.grid(visible=False, axis="y")
    ax.legend(loc="lower right", fontsize=9)


def flow() -> None:
    """Draw the order of questions that leads to a mapping."""
    rows = [
        ("Do bytes or arithmetic limit the layer?", "roofline", "Blue"),
        ("bytes: is each weight used only once?", "batch, or narrower numbers", "Orange"),
        ("bytes: does an intermediate leave the chip?", "fuse", "Orange"),
        ("bytes: is one operand fetched again?", "keep another, larger tile", "Orange"),
        ("arithmetic: are pieces too few or ragged?", "another operand, or cut the sum", "Green"),
        ("arithmetic: does the stream end too soon?", "stream the longest side", "Green"),
        ("Does a neighbor want another layout?", "price the change first", "Violet"),
    ]
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 0.56 * len(rows) + 0.1))
    for place, (question, answer, tone) in enumerate(rows):
        for x, width, text, face in ((0.01, 0.545, question, "L"), (0.61, 0.38, answer, None)):
            ax.add_patch(FancyBboxPatch((x + 0.01, place + 0.16), width - 0.02, 0.6, boxstyle="round,pad=0.01",
                                        facecolor=colors[tone + face] if face else "white",
                                        edgecolor=colors[f"{tone}Line"], linewidth=1.2))  # fmt: skip
            ax.text(x + width / 2, place + 0.46, text, ha="center", va="center", fontsize=7.6)
        ax.annotate("", (0.612, place + 0.46), (0.555, place + 0.46),
                    arrowprops={"arrowstyle": "-|>", "color": colors[f"{tone}Line"], "lw": 1.4})  # fmt: skip
        if place:
            ax.annotate("", (0.28, place + 0.15), (0.28, place - 0.23),
                        arrowprops={"arrowstyle": "-|>", "color": colors["primary"], "lw": 1.1})  # fmt: skip
    ax.set(xlim=(0, 1), ylim=(len(rows), 0))
    ax.axis("off")
