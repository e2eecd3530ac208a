"""The GPT-2 that computes: against torch's own modules, its loader, and the checkpoint that is shipped."""

import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

from mlsys import models
from mlsys.errors import InvalidValue
from mlsys.models import decoder
from mlsys.models.decoder import WrongCheckpoint, from_state, random_decoder, random_gpt2, to_state

ROOT = Path(__file__).parents[1]


def small(**sizes):
    return random_decoder(**{"layers": 2, "width": 24, "heads": 3, "vocabulary": 11, "positions": 9} | sizes)


def independent_logits(model, text):
    """The same model by torch's encoder layers, which normalize first and have a mask of their own."""
    width = model.width
    x = (model.tokens[text] + model.positions[: len(text)])[None]
    for layer in range(model.layers):
        block = torch.nn.TransformerEncoderLayer(
            width, model.heads, 4 * width, 0.0, lambda u: torch.nn.functional.gelu(u, approximate="tanh"),
            batch_first=True, norm_first=True,
        ).eval()  # fmt: skip
        loaded = {
            "self_attn.in_proj_weight": model.qkv_weight, "self_attn.in_proj_bias": model.qkv_bias,
            "self_attn.out_proj.weight": model.projection_weight, "self_attn.out_proj.bias": model.projection_bias,
            "linear1.weight": model.up_weight, "linear1.bias": model.up_bias,
            "linear2.weight": model.down_weight, "linear2.bias": model.down_bias,
            "norm1.weight": model.norm1_gain, "norm1.bias": model.norm1_shift,
            "norm2.weight": model.norm2_gain, "norm2.bias": model.norm2_shift,
        }  # fmt: skip
        block.load_state_dict({name: stacked[layer] for name, stacked in loaded.items()})
        mask = torch.nn.Transformer.generate_square_subsequent_mask(len(text))
        x = block(x, src_mask=mask, is_causal=True)
    return torch.nn.functional.layer_norm(x, (width,), model.norm_gain, model.norm_shift) @ model.tokens.T


@torch.no_grad()
def test_the_scores_are_those_of_torchs_own_layers_all_at_once_and_step_by_step():
    model = decoder.shipped()
    text = decoder.encoded("A tile is loaded once.")
    right = independent_logits(model, text)[0]
    torch.testing.assert_close(model.logits(torch.tensor([text]))[0], right, rtol=1e-4, atol=1e-4)
    cache = model.empty_cache()
    for position, token in enumerate(text):
        torch.testing.assert_close(model.step(token, position, cache), right[position], rtol=1e-4, atol=1e-4)


def test_the_greedy_token_is_the_best_and_the_lead_is_the_smallest():
    model = small()
    found, lead = model.greedy([1, 2], 3)
    text, leads = [1, 2], []
    for _ in range(3):
        scores = model.logits(torch.tensor([text]))[0, -1]
        best = scores.topk(2)
        leads.append(float(best.values[0] - best.values[1]))
        text.append(int(best.indices[0]))
    assert found == text[2:]
    assert lead == pytest.approx(min(leads), rel=1e-3, abs=1e-6)


@pytest.mark.parametrize(("text", "count"), [([], 1), ([1] * 7, 3)])
def test_a_text_without_room_is_refused(text, count):
    with pytest.raises(InvalidValue, match="at least one, and at most 9 in all"):
        small().greedy(text, count)


def test_sampling_is_the_same_for_the_same_seed_and_near_zero_greedy():
    model = small()
    assert model.sampled([1], 5, seed=3) == model.sampled([1], 5, seed=3)
    assert model.sampled([1], 5, temperature=1e-6) == model.greedy([1], 5)[0]


def test_a_state_dict_comes_back_as_it_was():
    model = small()
    again = from_state({f"transformer.{name}": tensor for name, tensor in to_state(model).items()}, heads=3)
    for name, tensor in model.tensors.items():
        assert torch.equal(tensor, again.tensors[name]), name


def test_the_real_checkpoints_names_and_shapes_are_taken():
    """Names and shapes as published, in a size that a test can hold: GPT-2's tensors with a width of 128."""
    width, state = 128, {}
    state["wte.weight"], state["wpe.weight"] = torch.zeros(50, width), torch.zeros(16, width)
    for layer in range(3):
        block = f"h.{layer}"
        for name, shape in {
            "ln_1.weight": (width,), "ln_1.bias": (width,), "attn.bias": (1, 1, 16, 16),
            "attn.c_attn.weight": (width, 3 * width), "attn.c_attn.bias": (3 * width,),
            "attn.c_proj.weight": (width, width), "attn.c_proj.bias": (width,),
            "ln_2.weight": (width,), "ln_2.bias": (width,),
            "mlp.c_fc.weight": (width, 4 * width), "mlp.c_fc.bias": (4 * width,),
            "mlp.c_proj.weight": (4 * width, width), "mlp.c_proj.bias": (width,),
        }.items():  # fmt: skip
            state[f"{block}.{name}"] = torch.zeros(shape)
    state["ln_f.weight"], state["ln_f.bias"] = torch.zeros(width), torch.zeros(width)
    found = from_state(state)
    assert (found.layers, found.width, found.heads, found.vocabulary, found.longest) == (3, 128, 2, 50, 16)
    assert found.qkv_weight.shape == (3, 3 * width, width)


def changed(name, tensor):
    state = to_state(small())
    if tensor is None:
        del state[name]
    else:
        state[name] = tensor
    return state


@pytest.mark.parametrize(
    ("name", "tensor", "says"),
    [
        (
            "h.1.attn.c_attn.weight",
            torch.zeros(72, 24),
            r"h\.1\.attn\.c_attn\.weight has shape \(72, 24\): in a GPT-2 of width 24 it has \(24, 72\)",
        ),
        ("h.0.mlp.c_fc.bias", torch.zeros(95), r"h\.0\.mlp\.c_fc\.bias has shape \(95,\): .* it has \(96,\)"),
        ("wpe.weight", torch.zeros(9, 23), r"wpe\.weight has shape \(9, 23\): .* it has \(9, 24\)"),
        ("wte.weight", torch.zeros(264), r"wte\.weight has shape \(264,\): it should have two sides"),
        ("ln_f.bias", None, r"no tensor ln_f\.bias: it should have shape \(24,\)"),
        ("wte.weight", None, r"no tensor wte\.weight: give a state dict of GPT-2"),
        ("h.0.ln_1.weight", torch.ones(24, dtype=torch.int64), r"h\.0\.ln_1\.weight is torch\.int64"),
        ("h.0.attn.rotary", torch.zeros(1), r"a tensor h\.0\.attn\.rotary, which a GPT-2 of 2 layers has not"),
    ],
)
def test_a_checkpoint_that_is_no_gpt2_is_refused_by_name(name, tensor, says):
    with pytest.raises(WrongCheckpoint, match=says):
        from_state(changed(name, tensor), heads=3)


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(WrongCheckpoint, match="width 24, which 5 heads do not divide"):
        from_state(to_state(small()), heads=5)
    with pytest.raises(WrongCheckpoint, match="width 24, which 0 heads do not divide: give heads="):
        from_state(to_state(small()))  # of GPT-2's size, there is not even one
    with pytest.raises(InvalidValue, match="width is 24, which 5 heads do not divide"):
        small(heads=5)


@pytest.mark.proof
def test_the_random_gpt2_has_the_parameters_that_the_package_counts():
    model = random_gpt2("small")
    assert sum(tensor.numel() for tensor in model.tensors.values()) == int(models.gpt2("small").params.magnitude)


def test_the_shipped_checkpoint_is_small_plain_and_has_the_loss_that_it_says():
    path = ROOT / "mlsys/data" / decoder.SHIPPED
    assert path.stat().st_size < 600_000
    with np.load(path, allow_pickle=False) as stored:
        assert all(stored[name].dtype.kind in "fi" for name in stored.files)
        said = float(stored["held_out_loss"])
    train = runpy.run_path(str(ROOT / "labs/capstone/train.py"))
    text = train["HELD_OUT"].read_text("utf-8")
    assert len(text) == train["HELD_OUT_CHARACTERS"]
    assert train["loss_on"](decoder.shipped(), text) == pytest.approx(said, abs=2e-3)
    assert said < 1.4  # nats per character; text by chance of letters alone has about 2.9


def test_a_character_that_the_model_lacks_is_refused():
    with pytest.raises(InvalidValue, match="'é' is no character of the shipped model"):
        decoder.encoded("café")
    assert decoder.decoded(decoder.encoded("A GPU\n")) == "A GPU\n"


@pytest.mark.proof
def test_training_is_the_same_each_time_and_lowers_the_loss():
    train = runpy.run_path(str(ROOT / "labs/capstone/train.py"))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        text = train["HELD_OUT"].read_text("utf-8")
        one, other = (train["trained"](text, 12) for _ in range(2))
    finally:
        torch.set_num_threads(threads)
    for name, tensor in one.tensors.items():
        assert torch.equal(tensor, other.tensors[name]), name
    assert train["loss_on"](one, text) < 4.4 < train["loss_on"](train["random_decoder"](**train["SHAPE"]), text)


def test_the_text_to_train_on_is_prose_of_the_book_without_the_held_out_pages():
    train = runpy.run_path(str(ROOT / "labs/capstone/train.py"))
    given, held_out = train["texts"]()
    assert len(given) > 100_000
    assert not {*given, *held_out} - {*decoder.CHARACTERS}
    assert held_out[:2000] not in given
    assert "```" not in given
