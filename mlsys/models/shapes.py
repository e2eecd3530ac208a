"""Shapes of the models, as `data/models.toml` gives them: layers, widths, kernels and the like.

>>> shapes().gpt2.sizes["small"].layers
12
"""

from functools import cache

from mlsys.core.sourced import Cited, Entry, Number, data_file


class ResNet(Cited, frozen=True, kw_only=True):
    """Shape of a residual network of bottleneck blocks; `blocks` and `widths` have one entry per stage."""

    image: int
    channels: int
    stem: int
    blocks: tuple[int, ...]
    widths: tuple[int, ...]
    expansion: int
    classes: int


class MobileNetV2(Cited, frozen=True, kw_only=True):
    """Shape of MobileNetV2; a stage of `blocks` is (expansion, channels out, repeats, stride of the first)."""

    image: int
    channels: int
    stem: int
    blocks: tuple[tuple[int, int, int, int], ...]
    head: int
    classes: int


class GPT2Size(Entry, frozen=True, kw_only=True):
    """Shape of one size of GPT-2."""

    layers: int
    width: int


class GPT2(Cited, frozen=True, kw_only=True):
    """Shape of the GPT-2 family; `printed_params` is how many parameters its authors say the largest has."""

    vocabulary: int
    positions: int
    head_dim: int
    mlp_ratio: int
    printed_params: Number
    sizes: dict[str, GPT2Size]


class Llama2Size(Entry, frozen=True, kw_only=True):
    """Shape of one size of Llama 2."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    mlp: int


class Llama2(Cited, frozen=True, kw_only=True):
    """Shape of the Llama 2 family."""

    vocabulary: int
    positions: int
    sizes: dict[str, Llama2Size]


class DLRM(Cited, frozen=True, kw_only=True):
    """Shape of DLRM: widths of the two MLPs and rows of the embedding tables."""

    dense: tuple[int, ...]
    top: tuple[int, ...]
    table_rows: tuple[int, ...]


class KeywordSpotting(Cited, frozen=True, kw_only=True):
    """Shape of the keyword spotter of MLPerf Tiny."""

    height: int
    width: int
    filters: int
    first_kernel: tuple[int, int]
    first_padding: tuple[int, int]
    blocks: int
    classes: int


class PersonDetection(Cited, frozen=True, kw_only=True):
    """Shape of the person detector of MLPerf Tiny; an entry of `blocks` is (channels out, stride)."""

    image: int
    channels: int
    stem: int
    blocks: tuple[tuple[int, int], ...]
    classes: int


class Shapes(Entry, frozen=True, kw_only=True):
    """The shape of every model."""

    resnet50: ResNet
    mobilenet_v2: MobileNetV2
    gpt2: GPT2
    llama2: Llama2
    dlrm: DLRM
    keyword_spotting: KeywordSpotting
    person_detection: PersonDetection


@cache
def shapes() -> Shapes:
    """Return the shape of every model."""
    return data_file("models.toml", Shapes)
