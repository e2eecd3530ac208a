import itertools
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers import torch_models
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from mlsys import models
from mlsys.errors import InvalidValue, UnknownName
from mlsys.models import Model

IMAGE_MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "resnet50": (torch_models.resnet50, (3, 224, 224)),
    "mobilenet_v2": (torch_models.mobilenet_v2, (3, 224, 224)),
    "keyword_spotting": (torch_models.keyword_spotting, (1, 49, 10)),
    "person_detection": (torch_models.person_detection, (3, 96, 96)),
}
DECODERS: dict[str, tuple[Callable[..., Model], dict[str, Any]]] = {
    f"gpt2-{size}": (
        lambda size=size, **arguments: models.gpt2(size, **arguments),
        {
            "vocabulary": 50257,
            "width": width,
            "layers": layers,
            "heads": width // 64,
            "kv_heads": width // 64,
            "mlp": 4 * width,
            "gpt2": True,
        },
    )
    for size, layers, width in (("small", 12, 768), ("medium", 24, 1024), ("large", 36, 1280), ("xl", 48, 1600))
} | {
    f"llama2-{size}": (
        getattr(models, f"llama2_{size}"),
        {
            "vocabulary": 32000,
            "width": width,
            "layers": layers,
            "heads": heads,
            "kv_heads": kv_heads,
            "mlp": mlp,
            "gpt2": False,
        },
    )
    for size, layers, width, heads, kv_heads, mlp in (
        ("7b", 32, 4096, 32, 32, 11008),
        ("13b", 40, 5120, 40, 40, 13824),
        ("70b", 80, 8192, 64, 8, 28672),
    )
}


def on_meta(build: Callable[[], nn.Module]) -> nn.Module:
    with torch.device("meta"):
        return build().eval()


def count(model: nn.Module, *inputs: Any) -> int:
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(*inputs)
    return int(counter.get_total_flops())


def parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def token_ids(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.long, device="meta")


def plain(model: Model) -> tuple[int, int]:
    return model.params.m_as("param"), model.flops.m_as("flop")


@pytest.mark.parametrize("name", IMAGE_MODELS)
@pytest.mark.parametrize("batch", [1, 3])
def test_image_model_agrees_with_torch(name: str, batch: int) -> None:
    build, shape = IMAGE_MODELS[name]
    module = on_meta(build)
    flops = count(module, torch.empty(batch, *shape, device="meta"))
    assert plain(getattr(models, name)(batch=batch)) == (parameters(module), flops)


@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v2"])
def test_activations_are_the_outputs_of_torch_modules(name: str) -> None:
    build, shape = IMAGE_MODELS[name]
    module, written = on_meta(build), 0

    def add(layer: nn.Module, _: Any, output: Tensor) -> None:
        nonlocal written
        if not isinstance(layer, nn.Flatten):
            written += output.numel()

    for layer in module.modules():
        if not list(layer.children()) and not isinstance(layer, nn.Sequential):
            layer.register_forward_hook(add)
    with torch.no_grad():
        module(torch.empty(2, *shape, device="meta"))
    assert getattr(models, name)(batch=2, dtype="fp16").activation_bytes.m_as("byte") == 2 * written


@pytest.mark.parametrize("name", DECODERS)
def test_prefill_agrees_with_torch(name: str) -> None:
    make, shape = DECODERS[name]
    module = on_meta(lambda: torch_models.Decoder(**shape))
    assert plain(make(batch=2, seq=96)) == (parameters(module), count(module, token_ids(2, 96)))


@pytest.mark.parametrize("name", ["gpt2-small", "gpt2-xl", "llama2-7b", "llama2-70b"])
def test_decode_agrees_with_torch(name: str) -> None:
    make, shape = DECODERS[name]
    module = on_meta(lambda: torch_models.Decoder(**shape))
    assert plain(make(batch=3, seq=200, decode=True)) == (parameters(module), count(module, token_ids(3, 1), 199))


def test_dlrm_agrees_with_torch() -> None:
    rows = [
        39884406, 39043, 17289, 7420, 20263, 3, 7120, 1543, 63, 38532951, 2953546, 403346, 10,
        2208, 11938, 155, 4, 976, 14, 39979771, 25641295, 39664984, 585935, 12972, 108, 36,
    ]  # fmt: skip
    module = on_meta(lambda: torch_models.DLRM(rows, 128))
    flops = count(module, torch.empty(5, 13, device="meta"), token_ids(5, 1))
    assert plain(models.dlrm(batch=5)) == (parameters(module), flops)


@pytest.mark.parametrize(
    ("model", "params"),
    [
        (models.resnet50(), 25_557_032),
        (models.mobilenet_v2(), 3_504_872),
        (models.gpt2("small"), 124_439_808),
        (models.gpt2("medium"), 354_823_168),
        (models.gpt2("large"), 774_030_080),
        (models.gpt2("xl"), 1_557_611_200),
        (models.llama2_7b(), 6_738_415_616),
        (models.llama2_13b(), 13_015_864_320),
        (models.llama2_70b(), 68_976_648_192),
        (models.keyword_spotting(), 24_908 - 1_152),  # Keras counts running means and variances too
    ],
    ids=lambda value: value.name if isinstance(value, Model) else "",
)
def test_parameters_are_those_published(model: Model, params: int) -> None:
    assert model.params.m_as("param") == params


@pytest.mark.parametrize(
    ("model", "million_macs"),
    [(models.resnet50(), 4089.2), (models.mobilenet_v2(), 300.8), (models.person_detection(), 7.49)],
    ids=lambda value: value.name if isinstance(value, Model) else "",
)
def test_multiply_adds_are_those_published(model: Model, million_macs: float) -> None:
    assert model.flops.m_as("MMAC") == pytest.approx(million_macs, rel=1e-3)


def test_convolutions_of_resnet50_straddle_the_ridge_of_an_a100() -> None:
    convolutions = [op for op in models.resnet50(batch=32).ops if op.kind == "conv2d"]
    intensities = [op.intensity.m_as("flop/byte") for op in convolutions]
    assert len(convolutions) == 53
    assert (round(min(intensities)), round(max(intensities))) == (32, 973)
    below = [op for op, value in zip(convolutions, intensities, strict=True) if value < 153]
    assert len(below) == 17
    share = sum(op.flop_count for op in below) / sum(op.flop_count for op in convolutions)
    assert share == pytest.approx(0.25, abs=0.01)


def test_memory_of_resnet50_activations() -> None:
    resnet = models.resnet50(batch=32, dtype="fp16")
    outputs = sum(op.write_count for op in resnet.ops if op.kind == "conv2d") / 2 / 32
    assert outputs == pytest.approx(11.1e6, rel=0.005)
    # Convolutions, their normalizations and activations alone: the sums and pools come on top.
    assert 3 * 32 * 2 * outputs == pytest.approx(2.13e9, rel=0.005)
    assert resnet.activation_bytes.m_as("byte") > 3 * 32 * 2 * outputs
    assert 0.12 < resnet.peak_activation_bytes.m_as("GB") < 0.16


@pytest.mark.parametrize(
    ("model", "kilobytes"),
    [(models.llama2_7b(), 524.288), (models.gpt2("xl"), 307.2), (models.llama2_70b(dtype="int8"), 163.84)],
    ids=lambda value: value.name if isinstance(value, Model) else "",
)
def test_kv_cache_of_a_token(model: models.LanguageModel, kilobytes: float) -> None:
    assert model.kv_bytes_per_token.m_as("kB/token") == pytest.approx(kilobytes)


def test_decode_reads_every_weight_and_the_whole_cache() -> None:
    model = models.llama2_7b(batch=4, seq=2048, decode=True)
    cache = 4 * 2048 * model.kv_bytes_per_token.m_as("byte/token")
    # Of the embedding table only four rows are read.
    table = 32000 * 4096 * 2
    least = model.weight_bytes.m_as("byte") - table + cache
    assert least < model.bytes.m_as("byte") < 1.01 * least


def test_peak_activation_leaves_out_weights_and_cache() -> None:
    """GPT-2: a vector into the output layer and scores out of it. DLRM: 27 vectors and their pairwise products."""
    step = models.gpt2("small", seq=1024, decode=True)
    assert step.peak_activation_bytes.m_as("byte") == 2 * (768 + 50257)
    dense, (first, *_) = models.dlrm(batch=1), models.dlrm(batch=1).ops
    assert first.read_count - first.resident_count == 4 * 13
    assert dense.peak_activation_bytes.m_as("byte") == 4 * (27 * 128 + 27 * 27)


def test_weights_read_in_a_pass_are_all_there_are_but_for_the_embedding() -> None:
    for model in (models.resnet50(), models.mobilenet_v2(), models.person_detection(dtype="fp16")):
        assert sum(op.resident_count for op in model.ops) == model.weight_bytes.m_as("byte")


def test_decode_does_two_flops_per_weight() -> None:
    step = models.gpt2("xl", batch=1, seq=1, decode=True)
    assert step.flops.m_as("flop") == pytest.approx(2 * step.params.m_as("param"), rel=0.01)


def test_prefill_costs_as_much_as_its_tokens_one_by_one_but_for_attention() -> None:
    prefill, steps = models.llama2_7b(seq=64), models.llama2_7b(batch=64, seq=64, decode=True)
    assert plain(prefill) == plain(steps)
    assert prefill.bytes < steps.bytes


@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v2", "dlrm", "keyword_spotting", "person_detection"])
def test_work_grows_with_the_batch_and_parameters_do_not(name: str) -> None:
    one, four = (getattr(models, name)(batch=batch) for batch in (1, 4))
    assert four.flops == 4 * one.flops
    assert four.other_flops == 4 * one.other_flops
    assert four.params == one.params
    assert four.activation_bytes == 4 * one.activation_bytes


def test_llama_70b_is_built_and_summed_in_milliseconds() -> None:
    def build() -> float:
        start = time.perf_counter()
        model = models.llama2_70b(batch=8, seq=4096, decode=True)
        assert model.flops.magnitude > 0
        assert model.bytes.magnitude > 0
        return time.perf_counter() - start

    assert min(build() for _ in range(5)) < 0.02


def test_every_model_names_its_document() -> None:
    for model in (models.resnet50(), models.gpt2(), models.llama2_7b(), models.dlrm(), models.person_detection()):
        assert model.source.title
        assert model.source.publisher


def test_unknown_size_or_too_many_tokens_are_refused() -> None:
    with pytest.raises(UnknownName, match="did you mean 'medium'"):
        models.gpt2("medum")
    with pytest.raises(UnknownName, match="Known: 13b, 70b, 7b"):
        models.llama2("34b")
    with pytest.raises(InvalidValue, match="use at most 1024"):
        models.gpt2("xl", seq=2000)
    with pytest.raises(InvalidValue, match="batch"):
        models.resnet50(batch=0)


def test_published_sizes_agree_with_counts_from_the_models_shapes():
    convolutions = [3, 64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512]
    dense = [512 * 7 * 7, 4096, 4096, 1000]
    vgg_16 = sum(9 * a * b + b for a, b in itertools.pairwise(convolutions))
    vgg_16 += sum(a * b + b for a, b in itertools.pairwise(dense))
    by_shape = {
        "resnet-50": models.resnet50().params.m_as("param"),
        "vgg-16": vgg_16,
        "bert-large": 24 * 12 * 1024**2 + 30522 * 1024,
        "gpt-3": 96 * 12 * 12288**2 + 50257 * 12288,
    }
    for model, count in by_shape.items():  # authors round by as much as 2.1%
        assert models.published_size(model).params.m_as("param") == pytest.approx(count, rel=0.03), model


def test_a_misspelt_published_model_gets_the_nearest_id():
    with pytest.raises(UnknownName, match="did you mean 'gpt-3'"):
        models.published_size("gpt3")
