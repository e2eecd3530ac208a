"""The capstone's fastest kernels: their tokens, what they refuse, and their code for a GPU that is not here.

The kernels that the lab itself asks for are in `test_capstone_lab.py`.
"""

import dataclasses
import inspect
import math
from functools import cache
from pathlib import Path

import pytest
import torch
from helpers.known_gpus import NO_GPU, T4
from helpers.known_lab import compile_kernels

from mlsys.bench.lab import lab_module
from mlsys.grading import use_device
from mlsys.models import decoder
from mlsys.models.decoder import Decoder, random_decoder

LAB = Path(__file__).parents[2] / "labs/capstone"


@cache
def fast():
    """`fast.py`, which imports triton: as late as the labs' own cells do."""
    use_device()
    return lab_module(LAB / "fast.py")


def model(dtype=torch.float32, **sizes):
    """A random model whose scores differ clearly."""
    made = random_decoder(**{"layers": 2, "width": 48, "heads": 3, "vocabulary": 45, "positions": 14} | sizes)
    larger = {name: (5 * part if name.endswith("weight") else part).to(dtype) for name, part in made.tensors.items()}
    return Decoder(made.heads, **larger)


def plan(**changes):
    """Few programs, for the interpreter takes its time for each, and ragged ones."""
    few = {"qkv": 64, "project": 32, "up": 64, "down": 32, "head": 32, "splits": 2, "keys": 4, "persistent_head": 16}
    return fast().Plan(**few | changes)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_scores_are_those_of_the_reference(dtype):
    given = model(dtype)
    exact, ours = given.to(torch.float32), fast().FastDecoder(given, plan())
    steps = ours.step, ours.persistent_step
    kept = exact.empty_cache()
    ours.begin([3, 9, 40])
    for position, token in enumerate([3, 9, 40]):
        right = exact.step(token, position, kept)
        steps[position % 2](scores=True)
        error = (ours.scores - right).abs().max() / right.std()
        assert error < (1e-5 if dtype == torch.float32 else 5e-3)  # keys and values are kept in the dtype
        assert ours.next_token() == int(ours.scores.argmax())
    assert int(ours.length) == 3
    before = ours.cache.clone()
    ours.step(scores=True, hold=True)
    assert int(ours.length) == 3  # the newest token once more
    assert (ours.scores - right).abs().max() / right.std() < 5e-3
    torch.testing.assert_close(ours.cache, before)


@pytest.mark.parametrize("way", ["step", "persistent_step"])
def test_greedy_tokens_are_the_references(way):
    given = model(layers=1)
    right, lead = given.greedy([7, 1], 4)
    assert lead > 1e-3
    ours = fast().FastDecoder(given, plan(splits=3, keys=1))  # shares without tokens, and shares of two groups
    assert ours.greedy([7, 1], 4, getattr(ours, way)) == right


@pytest.mark.proof
@pytest.mark.parametrize("way", ["step", "persistent_step"])
def test_the_shipped_model_writes_the_same_text(way):
    given = decoder.shipped()
    text = decoder.encoded("The roofline ")
    right, lead = given.greedy(text, 5)
    assert lead > 0.05
    ours = fast().FastDecoder(given, plan(qkv=256, project=128, up=512, down=128, head=128, keys=32))
    assert ours.greedy(text, 5, getattr(ours, way)) == right


def test_the_best_token_is_the_lowest_of_equal_ones_and_of_negative_scores():
    given = model()
    given = dataclasses.replace(given, tokens=given.tokens.clone())
    given.tokens[:] = given.tokens[:1]  # all scores are the same
    ours = fast().FastDecoder(given, plan())
    ours.begin([5])
    ours.step()
    assert ours.next_token() == 0
    scores = torch.tensor([-3.0, -0.5, -0.25, -2.0, 0.0, -0.0])
    for some in (scores[:4], scores, -scores):
        bits = some.view(torch.int32)
        ordered = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits)  # what `packed` compares
        assert int(ordered.argmax()) == int(some.argmax())


def test_normalization_behind_the_product_is_that_before_it():
    generator = torch.Generator().manual_seed(2)
    x = 3 + torch.randn(64, generator=generator, dtype=torch.float64)
    weight, gain, shift, bias = (
        torch.randn(*size, generator=generator) for size in [(2, 5, 64), (2, 64), (2, 64), (2, 5)]
    )
    sums, rest = fast().folded(weight, gain, shift, bias)
    scale = (x.var(correction=0) + 1e-5) ** -0.5
    for layer in range(2):
        wide = (one[layer].double() for one in (gain, shift, weight, bias))
        normed = torch.nn.functional.layer_norm(x, (64,), *(next(wide) for _ in range(2)), eps=1e-5)
        right = torch.nn.functional.linear(normed, *wide)
        ours = scale * ((weight * gain[:, None]).double()[layer] @ x - x.mean() * sums[layer]) + rest[layer]
        torch.testing.assert_close(ours, right, rtol=0, atol=1e-4)


def test_pieces_divide_every_width():
    for width in (16, 48, 768, 1600, 2048):
        piece = fast().piece_of(width, 256)
        assert width % piece == 0
        assert piece in (16, 64, 256)
        assert piece == 256 or width % (2 * piece)


def test_a_row_of_equal_numbers_is_normalized():
    """Its variance is 0, and rounding must not make it negative."""
    given = model(layers=1)
    given = dataclasses.replace(
        given, positions=torch.zeros_like(given.positions), tokens=torch.full_like(given.tokens, 33.3)
    )
    ours = fast().FastDecoder(given, plan())
    ours.begin([5])
    ours.step(scores=True)
    assert ours.scores.isfinite().all()


def test_rows_of_all_programs_of_the_persistent_kernel_fit_its_blocks():
    given = random_decoder(layers=1, width=768, heads=12, vocabulary=64, positions=4)
    for programs in (80, 108, 132, 148):
        assert fast().FastDecoder(given, programs=programs).persistent_rows >= math.ceil(768 / programs)


def test_words_carry_the_tag_of_their_layer():
    """What a token leaves behind: x with the tag behind the last layer, all else with the last layer's."""
    ours = fast().FastDecoder(model(), plan())
    ours.begin([3, 9])
    ours.persistent_step()
    ours.persistent_step()
    tags = ours.words[:-4] & 63
    assert set(tags[:48].tolist()) == {3}
    assert set(tags[48:].tolist()) == {2}


def test_steps_without_weights_pass_a_row_on_in_both_ways():
    """Twelve times: each normalizes the row before, whose sum is then 0, and stores it plus the number of the place."""
    ours = fast().FastDecoder(model(), plan())
    for step in (ours.weightless_step, ours.weightless_persistent_step):
        ours.two_rows.fill_(float("nan"))
        ours.two_rows[0] = torch.randn(48)
        step()
        torch.testing.assert_close(ours.two_rows, torch.arange(48.0).repeat(2, 1), rtol=0, atol=1e-3)
    assert int(ours.count) == ours.kernels == 12


POINTERS = {
    "x_ptr": "*fp32", "q_ptr": "*fp32", "part_ptr": "*fp32", "hidden_ptr": "*fp32", "scores_ptr": "*fp32",
    "y_ptr": "*fp32", "rows_ptr": "*fp32", "averages_ptr": "*fp32", "logs_ptr": "*fp32",
    "qkv_sums_ptr": "*fp32", "qkv_rest_ptr": "*fp32", "up_sums_ptr": "*fp32", "up_rest_ptr": "*fp32",
    "words_ptr": "*i32", "sums_ptr": "*fp32", "rest_ptr": "*fp32", "bias_ptr": "*fp32",
    "length_ptr": "*i32", "text_ptr": "*i32", "count_ptr": "*i32", "best_ptr": "*i64",
}  # fmt: skip


def job(kernel, warps, **constants):
    """A kernel on GPT-2's shapes in bf16."""
    names = inspect.signature(getattr(fast(), kernel).fn).parameters
    odd = [name for name in ("VOCABULARY", "layers", "heads", "prompt") if name in names]
    usual = {"BLOCK": 1024, "EPS": 1e-5, "PIECE": fast().Plan().piece, "IN_PLACE": True}
    if not {"WIDTH", "BLOCK"} <= names.keys():  # kernels with blocks take widths as numbers
        usual["WIDTH"] = 768
    constants = {name: value for name, value in usual.items() if name in names} | constants
    types = {name: kind for name, kind in POINTERS.items() if name in names}
    types |= {name: "*fp32" for name in ("projection_bias_ptr", "down_bias_ptr") if name in names}
    made = {"kernel": kernel, "num_warps": warps, "constants": constants, "types": types, "odd": odd}
    return made | {"dtype": "bf16", "capability": 90}


@pytest.mark.proof
@pytest.mark.parametrize("overlap", [False, True])
def test_the_kernels_compile_for_hopper_and_load_weights_in_wide_pieces(overlap):
    usual = fast().Plan()
    head, split = {"HEAD": 64}, {"HEAD": 64, "SPLITS": usual.splits}
    warps = usual.num_warps
    jobs = [
        job("start_kernel", warps, OVERLAP=overlap, HOLD=0),
        job("qkv_kernel", warps, OVERLAP=overlap, ROWS=usual.qkv),
        job("attend_kernel", warps, OVERLAP=overlap, KEYS=usual.keys, **split),
        job("project_kernel", warps, OVERLAP=overlap, ROWS=usual.project, **split),
        job("up_kernel", warps, OVERLAP=overlap, ROWS=usual.up),
        job("down_kernel", warps, OVERLAP=overlap, ROWS=usual.down, PIECE=usual.long_piece),
        job("head_kernel", warps, OVERLAP=overlap, ROWS=usual.head, SCORES=False),
        job(
            "persistent_kernel", usual.persistent_warps, HEADS=12, SPLITS=usual.splits, KEYS=usual.keys,
            LONG_PIECE=usual.long_piece, PACK=4, ROWS=8, QKV_BLOCKS=3, UP_BLOCKS=3, HEAD_ROWS=usual.persistent_head,
            HEAD_AHEAD=usual.persistent_ahead, SCORES=False, HOLD=0, SPIN=True, FETCH=True,
        ),
        job("weightless_kernel", warps, OVERLAP=overlap, ROWS=usual.project),
        job("weightless_phases_kernel", usual.persistent_warps, ROWS=8),
        job("barriers_kernel", usual.persistent_warps),
    ]  # fmt: skip
    assert head.items() <= split.items()
    needed = dict(zip([one["kernel"] for one in jobs], compile_kernels(LAB / "fast.py", jobs), strict=True))
    for kernel in ("qkv_kernel", "project_kernel", "up_kernel", "down_kernel", "head_kernel"):
        assert needed[kernel]["spilled_bytes"] == 0, kernel
        assert needed[kernel]["wide_loads"] > 0, kernel
    assert needed["persistent_kernel"]["wide_loads"] > 0
    assert needed["persistent_kernel"]["spilled_bytes"] == 0
    for kernel, needs in needed.items():
        assert needs["registers"] * 32 * (usual.persistent_warps if kernel == "persistent_kernel" else warps) <= 65536


def test_overlapping_kernels_are_refused_where_a_gpu_has_none():
    with pytest.raises(
        fast().CannotDecode, match=r"kernels cannot overlap on .*9\.0 or more: give a plan with overlap"
    ):
        fast().FastDecoder(model(), plan(overlap=True))
    with pytest.raises(fast().CannotDecode, match="kernels cannot overlap on Tesla T4"):
        fast().check_overlap(T4)


def with_tensor(given, name, tensor):
    return dataclasses.replace(given, **{name: tensor})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda m: m.to(torch.float64), r"tokens is torch\.float64 .* as float32, float16 or bfloat16"),
        (lambda m: with_tensor(m, "up_bias", m.up_bias.half()), r"up_bias is torch\.float16 on cpu, tokens is"),
        (lambda m: with_tensor(m, "tokens", m.tokens.to("meta")), r"is torch\.float32 on cpu, tokens .* on meta"),
        (lambda m: with_tensor(m, "qkv_weight", m.qkv_weight.mT.contiguous().mT), r"qkv_weight has strides"),
        (lambda m: model(width=4096, heads=64, layers=1, vocabulary=2), "the width is 4096: at most 2048"),
        (lambda m: model(layers=63, width=16, heads=1, vocabulary=2), "the model has 63 layers: at most 62"),
        (lambda m: model(width=48, heads=2), "a head has 24 numbers: 16, 32, 64, 128 are possible"),
    ],
)
def test_a_model_that_the_kernels_do_not_take_is_refused_before_a_launch(change, says):
    with pytest.raises(fast().CannotDecode, match=says):
        fast().FastDecoder(change(model()), plan())


def test_texts_without_room_or_with_unknown_tokens_are_refused():
    ours = fast().FastDecoder(model(), plan())
    for text, says in [([], "a text of 0 tokens"), ([1] * 15, "a text of 15 tokens: give from 1 to 14"),
                       ([45], "token 45: the model has tokens 0 to 44"), ([-1], "token -1")]:  # fmt: skip
        with pytest.raises(fast().CannotDecode, match=says):
            ours.begin(text)
    for count in (0, 14, 1.5):
        with pytest.raises(fast().CannotDecode, match="1 tokens and .* more: give 1 or more, and at most 14 in all"):
            ours.greedy([1], count)


@pytest.mark.parametrize(
    ("device", "says"),
    [(NO_GPU, "no CUDA GPU found here, and a CUDA graph needs one"), (T4, "Tesla T4 has compute capability 7.5")],
)
def test_a_graph_is_refused_where_no_gpu_can_replay_it(device, says, monkeypatch):
    monkeypatch.setattr(fast(), "detect_device", lambda: device)
    ours = fast().FastDecoder(model(), plan())
    with pytest.raises(fast().CannotDecode, match=says):
        fast().captured(ours, ours.step)
