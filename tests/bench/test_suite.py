import dataclasses
import json
import os
import re
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from mlsys.measure.device import Device

pytestmark = [pytest.mark.proof, pytest.mark.timeout(900)]  # the first test measures all rows in the interpreter

torch = pytest.importorskip("torch")
if find_spec("triton") is None:  # looked for, not imported: labs must decide before that whether to interpret
    pytest.skip("needs triton", allow_module_level=True)
HERE = Path(__file__).parents[1] / "helpers"


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    result = tmp_path_factory.mktemp("book") / "rows.json"
    command = [sys.executable, HERE / "run_book_suite.py", result]
    subprocess.run(command, check=True, timeout=600, env=os.environ | {"TRITON_INTERPRET": "1"})
    return json.loads(result.read_text())


def test_every_measurement_of_the_book_runs(suite):
    assert suite["left_out"] == []
    counted = Counter(row["name"] for row in suite["rows"])
    assert counted == {
        "independent roofs": 2,
        "copy bandwidth": 4,
        "working set": 2,
        "pointer chase": 2,
        "bytes in flight": 2,
        "stride": 2,
        "host link": 5,
        "host add": 1,
        "vector add": 1,
        "special functions": 3,
        "matmul by dtype": 2,
        "matmul by alignment": 2,
        "sparse matmul by density": 3,
        "dense layer by batch": 2,
        "ResNet-50": 4,
        "GPT-2 small": 6,
        "convolution": 2,
        "layout change": 3,
        "softmax": 1,
        "layernorm": 1,
        "unfused chain": 3,
        "residual norm": 2,
        "embedding": 1,
        "launch latency": 5,
    }


def test_rates_are_of_the_bytes_and_flops_that_a_call_must_do(suite):
    def work(name, variant):
        row = next(row for row in suite["rows"] if (row["name"], row["variant"]) == (name, variant))
        return row["achieved"] * row["median_s"]

    kib = 2**10 / 1e9
    assert work("independent roofs", "stream triad") == pytest.approx(3 * 2048 * 4 / 1e9)
    assert work("host link", "pinned both ways") == pytest.approx(4 * kib)
    assert work("host add", "torch") == pytest.approx(3 * 4 * kib)
    assert work("copy bandwidth", "read") == pytest.approx(64 * kib)
    assert work("copy bandwidth", "add") == pytest.approx(3 * 64 * kib)
    assert work("stride", "stride 4") == pytest.approx(4096 * 4 / 1e9)
    assert work("vector add", "torch") == pytest.approx(3 * 4 * kib)
    assert work("softmax", "torch") == pytest.approx(2 * 64 * 32 * 2 / 1e9)
    assert work("layernorm", "torch") == pytest.approx((2 * 64 * 32 + 2 * 32) * 2 / 1e9)
    assert work("unfused chain", "ReLU") == pytest.approx(2 * 64 * 32 * 2 / 1e9)
    assert work("unfused chain", "batch normalization") == pytest.approx((2 * 64 * 32 + 4 * 32) * 2 / 1e9)
    assert work("residual norm", "warps 1") == pytest.approx((4 * 64 * 24 + 24) * 2 / 1e9)
    assert work("embedding", "torch") == pytest.approx((64 * (8 * 4 + 8) + 16 * 8 * 4) / 1e9)
    assert work("matmul by dtype", "vendor library") == pytest.approx(2 * 64**3 / 1e12)
    assert work("convolution", "NHWC") == pytest.approx(2 * 2 * 4 * 8 * 8 * 4 * 9 / 1e12)
    assert work("layout change", "to NHWC") == pytest.approx(2 * 2 * 2 * 4 * 8 * 8 / 1e9)
    # A side of 32 instead of 224: each convolution's maps have 49 times fewer places, the classifier stays.
    classifier = 2 * 2048 * 1000
    expected = (2 * 4_089_184_256 - classifier) / 49 + classifier
    assert work("ResNet-50", "graph") == pytest.approx(expected / 1e12)


def test_the_dense_layers_ceiling_is_the_lower_roof(suite):
    ceilings = [row["ceiling"] for row in suite["rows"] if row["name"] == "dense layer by batch"]
    bytes_moved = [2 * (64 * 64 + 2 * batch * 64) for batch in (1, 4)]
    assert ceilings == pytest.approx(
        [1e3 * 2 * batch * 64 * 64 / moved for batch, moved in zip((1, 4), bytes_moved, strict=True)]
    )


def test_the_measured_network_is_resnet50_with_its_normalizations_folded():
    """Against the same network of torch's modules: the same convolutions, and norms that only add a shift."""
    from helpers.torch_models import resnet50
    from torch import nn

    from mlsys import models
    from mlsys.bench.suite.network import TorchNetwork
    from mlsys.models.convolutional import build_resnet50

    net = TorchNetwork(n=2, c=3, h=64, w=64, dtype="fp32", device="cpu")
    build_resnet50(net)
    other = resnet50().eval()
    convolutions = [part for part in other.modules() if isinstance(part, nn.Conv2d)]
    norms = [part for part in other.modules() if isinstance(part, nn.BatchNorm2d)]
    with torch.no_grad():
        for (weight, shift), convolution, norm in zip(net.convolutions, convolutions, norms, strict=True):
            convolution.weight.copy_(weight)
            norm.bias.copy_(shift)
            norm.eps = 0.0
        for ours, theirs in zip(net.classifier, (other[-1].weight, other[-1].bias), strict=True):
            theirs.copy_(ours)
        images = torch.randn(2, 3, 64, 64)
        due = other(images)
        # Sums of thousands of terms that cancel: what counts is the error beside the largest result.
        torch.testing.assert_close(net(images), due, rtol=0, atol=1e-5 * float(due.abs().max()))
    names = [op.name for op in models.resnet50().ops if op.kind != "batchnorm"]
    assert [op.name for op in net.ops] == names


@pytest.fixture
def decoder():
    """Two layers of GPT-2 small with few tokens to choose from, and the prompt 0, 1, ... for each of two sequences."""
    from mlsys import models
    from mlsys.bench.suite.decoder import TorchDecoder

    model = dataclasses.replace(models.gpt2("small"), layers=2, vocabulary=50)
    torch.manual_seed(0)
    net = TorchDecoder(model, batch=2, context=7, dtype=torch.float64, device="cpu")
    for layer in net.layers:  # larger than at the start of a training, so that attention is far from a mean
        for weight, _ in layer.values():
            weight.mul_(5)
    return net, torch.randint(50, (2, 7))


def test_a_step_of_decode_ends_where_a_prefill_of_all_tokens_ends(decoder):
    """Whether keys and values come from the cache or are computed again makes no difference."""
    net, ids = decoder
    whole = net(ids, 0)
    net.cache.zero_()
    steps = [net(ids[:, :4], 0), *(net(ids[:, place : place + 1], place) for place in range(4, 7))]
    torch.testing.assert_close(torch.cat(steps, 1), whole)
    assert float((whole[0, 6] - net(ids[:, :1], 6)[0, 0]).abs().max()) > 1e-6, "the token matters"


def test_the_measured_decoder_computes_what_torchs_modules_compute(decoder):
    """For a single token there is nothing to mask: the same layers, put together by other code."""
    from helpers.torch_models import Decoder

    net, ids = decoder
    other = Decoder(50, 768, 2, 12, 12, 3072, gpt2=True).double()
    with torch.no_grad():
        other.tokens.weight.copy_(net.tokens)
        other.positions.weight.zero_()[0].copy_(net.positions[0])
        for theirs, ours in zip(other.layers, net.layers, strict=True):
            weight, bias = ours["qkv"]
            for name, w, b in zip("qkv", weight.split(768), bias.split(768), strict=True):
                theirs[name].weight.copy_(w)
                theirs[name].bias.copy_(b)
            for name, key in (
                ("out", "projection"),
                ("up", "up"),
                ("down", "down"),
                *(2 * (f"norm{n}",) for n in (1, 2)),
            ):
                theirs[name].weight.copy_(ours[key][0])
                theirs[name].bias.copy_(ours[key][1])
        other.norm.weight.copy_(net.norm[0])
        other.norm.bias.copy_(net.norm[1])
        torch.testing.assert_close(net(ids[:, :1], 0), other(ids[:, :1]), rtol=1e-3, atol=1e-4)


def test_the_measured_decoder_has_the_parameters_of_the_model():
    from mlsys import models
    from mlsys.bench.suite.decoder import TorchDecoder

    model = models.gpt2("small", seq=1024)
    net = TorchDecoder(model, batch=1, context=1024, dtype=torch.float16, device="meta")
    layers = [tensor for layer in net.layers for pair in layer.values() for tensor in pair]
    held = [net.tokens, net.positions, *net.norm, *layers]
    assert sum(tensor.numel() for tensor in held) == model.params.m
    assert net.cache.numel() * 2 == model.kv_cache_bytes(1024).m


@pytest.fixture
def setting():
    from mlsys.bench.suite import Setting
    from mlsys.measure.ceilings import Ceilings
    from mlsys.units import ureg

    return Setting(Ceilings(Device("cpu", "a CPU"), ureg("1 GB/s"), {}), "cpu")


def test_convolutions_are_timed_with_cudnn(setting, monkeypatch):
    """The flags of `torch.backends.cudnn` turn cuDNN off unless they are told otherwise."""
    from mlsys.bench.suite import Sizes, layouts, network
    from mlsys.units import ureg

    seen = []

    def row(self, *_, call, **__):
        call()
        seen.append((torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark))

    monkeypatch.setattr(type(setting), "row", row)
    ceilings = dataclasses.replace(setting.ceilings, matmul={"fp16": ureg("1 TFLOP/s")})
    sizes = Sizes(images=(1,), image_side=32, layout_images=(1, 4, 8, 8), layout_filters=4)
    small = dataclasses.replace(setting, ceilings=ceilings, sizes=sizes)
    for measurement in (layouts.convolution, network.resnet50):
        list(measurement(small))
    assert set(seen) == {(True, True)}


def test_a_peer_that_fails_or_differs_is_left_out_and_named(setting, capsys):
    def breaks():
        raise RuntimeError("no compiler\nand a long story")

    x = torch.randn(8, 8)
    found = setting.peers(lambda: x, {"same": lambda: x.clone(), "wrong": lambda: x + 1, "broken": breaks})
    assert list(found) == ["same"]
    printed = capsys.readouterr().out
    assert "without wrong: WrongAnswer" in printed
    assert "without broken: RuntimeError: no compiler\n" in printed


def test_a_peer_must_agree_in_all_that_the_work_returns(setting, capsys):
    x, sums = torch.randn(5, 7), torch.randn(7)
    others = {"same": lambda: (x, sums), "half": lambda: (x, sums / 2), "short": lambda: (x,)}
    assert list(setting.peers(lambda: (x, sums), others)) == ["same"]
    printed = capsys.readouterr().out
    assert re.search("without half: WrongAnswer: .*result 2 of half", printed)
    assert "without short: ValueError" in printed


def test_pruning_keeps_the_two_largest_of_four():
    from mlsys.bench.suite.sparse import prune_2_of_4

    weight = torch.tensor([[1.0, -4.0, 3.0, 2.0, 0.5, -0.1, 0.2, 0.3]])
    assert prune_2_of_4(weight).tolist() == [[0.0, -4.0, 3.0, 0.0, 0.5, 0.0, 0.0, pytest.approx(0.3)]]


@pytest.mark.parametrize(
    ("precision", "error"), [("fp32", 1e-6), ("fp16", 1e-3), ("bf16", 1e-2), ("fp8", 1e-2), ("int8", 1e-12)]
)
def test_a_product_of_every_precision_is_the_product(precision, error, monkeypatch):
    from mlsys.measure import gpu_ceilings

    drawn = []

    draw = gpu_ceilings.random_matrix

    def recorded(*asked):
        drawn.append(draw(*asked))
        return drawn[-1]

    monkeypatch.setattr(gpu_ceilings, "random_matrix", recorded)
    found = gpu_ceilings.product(precision, 32, 48, 64, "cpu")().double()
    a, b = (matrix.double() for matrix in drawn)
    expected = a @ (b.t() if precision in ("fp8", "int8") else b)
    assert float((found - expected).norm() / expected.norm()) < error


def test_a_device_multiplies_only_what_it_has():
    from mlsys.measure.gpu_ceilings import precisions_of

    by_capability = {
        capability: precisions_of(Device("gpu", "a GPU", capability)) for capability in ((7, 5), (8, 0), (9, 0))
    }
    assert by_capability[7, 5] == ("fp32", "fp16")
    assert "bf16" in by_capability[8, 0]
    assert "fp8" not in by_capability[8, 0]
    assert "fp8" in by_capability[9, 0]


def test_a_ring_goes_through_every_line_once():
    from mlsys.bench.suite.latency import ring_of

    ring, order = ring_of(2**13, "cpu")
    seen, place = [], int(order[0])
    for _ in range(64):
        seen.append(place)
        place = int(ring[place])
    assert place == order[0]
    assert sorted(seen) == list(range(0, 2048, 32))


def test_float32_products_get_their_setting_back():
    from mlsys.measure.gpu_ceilings import tf32

    before = torch.backends.cuda.matmul.allow_tf32
    with tf32(not before):
        assert torch.backends.cuda.matmul.allow_tf32 is not before
    assert torch.backends.cuda.matmul.allow_tf32 is before


def without_interpreter():
    return {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}


@pytest.mark.parametrize("capability", [75, 80, 90])
def test_measuring_kernels_compile_to_what_they_measure(capability):
    from mlsys.measure import triton_kernels

    command = [sys.executable, HERE / "compile_measuring_kernels.py", str(capability)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=without_interpreter())
    found = json.loads(done.stdout)
    assert all(kernel["spilled_bytes"] == 0 for kernel in found.values())
    if capability >= 80:  # before, Triton reaches no tensor cores
        shape = "wgmma.m64n256k16" if capability == 90 else "mma.m16n8k16"
        assert found["mma_kernel"]["products"] == [shape]
        assert found["mma_kernel"]["loop_loads"] == []
    if capability == 90:  # a step's products are queued before those of the step before it are done
        assert found["mma_kernel"]["waits_for_all_but"] == [1, 0]
    assert set(found["triad_kernel"]["global_loads"]) == {"ld.global.v4.b32"}
    # 16 unrolled steps of the 8 chains that each of 128 threads has: nothing was folded away, nothing is loaded.
    assert found["fma_kernel"]["fma"] == 16 * triton_kernels.FMA_CHAINS // 128
    assert found["fma_kernel"]["global_loads"] == []
    assert found["special_kernel"]["exp2"] == 16 * triton_kernels.FMA_CHAINS // 128
    # One load waits for the other; a thread of the other kernel asks for 8 numbers and then waits for all of them.
    assert found["chase_kernel"]["loop_loads"] == ["ld.global.b32"]
    assert found["waiting_reads_kernel"]["loop_loads"] == ["ld.global.b32"] * (triton_kernels.WAITING_BLOCK // 128)
    assert set(found["strided_sum_kernel"]["global_loads"]) == {"ld.global.v4.b32"}
    assert set(found["strided_sum_kernel, apart"]["global_loads"]) == {"ld.global.b32"}


def interpreted(program):
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"TRITON_INTERPRET": "1"},
    )
    return done.stdout


def test_fma_chains_follow_their_closed_form():
    interpreted(
        "import torch; from mlsys.measure import triton_kernels as k; "
        "out = torch.empty(2 * k.FMA_CHAINS); k.fma(out, 48); "
        "n = torch.arange(out.numel(), dtype=torch.float64); s = 0.9999 ** 48; "
        "torch.testing.assert_close(out.double(), s * n + 0.5 * (1 - s) / (1 - 0.9999), rtol=1e-5, atol=1e-3)"
    )


@pytest.mark.parametrize("precision", ["fp16", "tf32", "int8"])
def test_an_mma_chain_adds_up_as_many_products_as_it_counts(precision):
    found = json.loads(
        interpreted(
            "import json; from mlsys.measure import roofs; from mlsys.measure.device import cpu_device; "
            f"roof = roofs.roof('mma chain {precision}', cpu_device(), roofs.RoofSizes(programs=2, mma_steps=5)); "
            "made = {n: c for n, c in zip(('sums', 'a', 'b'), roof.call.args)}; roof.call(); "
            "one = made['a'].double() @ made['b'].double().sum(0); "
            "print(json.dumps([list(roof.shape), roof.work, float((made['sums'] / one).median())]))"
        )
    )
    shape, work, steps_done = found
    depth = {"fp16": 64, "tf32": 32, "int8": 128}[precision]
    assert shape == [2 * 128, 128, 5 * depth]
    assert work == pytest.approx(2 * shape[0] * shape[1] * shape[2] / 1e12)
    assert steps_done == pytest.approx(5, rel=1e-3)


def test_a_roof_whose_kernel_computes_something_else_is_refused():
    message = interpreted(
        "from mlsys.measure import roofs, triton_kernels; from mlsys.measure.device import cpu_device\n"
        "triton_kernels.triad = lambda a, b, c, scale: a.copy_(b)\n"
        "try: roofs.roof('stream triad', cpu_device(), roofs.RoofSizes(triad_elements=1024))\n"
        "except ArithmeticError as error: print(error)"
    )
    assert "the stream triad is wrong by" in message


def test_a_device_has_the_roofs_that_triton_reaches():
    from mlsys.measure.roofs import roofs_of

    by_capability = {one: roofs_of(Device("gpu", "a GPU", one)) for one in ((7, 5), (8, 0), (9, 0))}
    assert by_capability[7, 5] == ("stream triad", "fma chain fp32")
    assert "mma chain bf16" in by_capability[8, 0]
    assert "mma chain fp8" not in by_capability[8, 0]
    assert "mma chain fp8" in by_capability[9, 0]
