import subprocess
import sys

import pytest
import torch

from mlsys.errors import InvalidValue
from mlsys.grading import WrongAnswer, assert_close, assert_equal
from mlsys.grading.checks.assertions import hidden_values

TILE = (16, 16)


@pytest.fixture
def matrices():
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.randn(40, 40, generator=generator) for _ in range(2))
    return a, b, (a.double() @ b.double()).float()


def message(actual, expected, **options):
    with pytest.raises(WrongAnswer) as caught:
        assert_close(actual, expected, **options)
    return str(caught.value)


def test_float32_in_any_order_of_summing_passes(matrices):
    a, b, right = matrices
    backwards = sum(a[:, [k]] * b[[k], :] for k in reversed(range(40)))
    assert_close(backwards, right)


def test_tf32_inputs_are_seen_as_too_few_digits(matrices):
    a, b, right = matrices
    short_a, short_b = ((x.view(torch.int32) & ~0x1FFF).view(torch.float32) for x in (a, b))  # 10 bits stay
    assert "input_precision" in message(short_a @ short_b, right, tile=TILE)


def test_a_half_precision_result_rounded_once_passes(matrices):
    right = matrices[2]
    assert_close(right.half(), right.half())
    assert_close((right * (1 + 2**-11)).half(), right.half())


def test_first_wrong_element_and_its_tile_are_named(matrices):
    right = matrices[2]
    wrong = right.clone()
    wrong[17, 35] += 100
    text = message(wrong, right, tile=TILE, what="C")
    assert "C: 1 of 1,600 elements" in text
    assert "[17, 35] (tile 1, 2 of 16 x 16)" in text


def test_wrong_edge_tiles_point_to_a_mask(matrices):
    right = matrices[2]
    wrong = right.clone()
    wrong[:, 32:] *= 3
    assert "mask" in message(wrong, right, tile=TILE)


def test_a_transposed_result_is_recognized(matrices):
    right = matrices[2]
    assert "transpose" in message(right.T.contiguous(), right, tile=TILE)


def test_elements_that_nobody_wrote_are_recognized(matrices):
    right = matrices[2]
    wrong = right.clone()
    wrong[16:32] = float("nan")
    assert "never written" in message(wrong, right, tile=TILE)
    assert "nothing was written" in message(torch.full_like(right, float("nan")), right, tile=TILE)


def test_a_reference_that_is_no_number_is_not_the_students_fault(matrices):
    *_, right = matrices
    overflowed = right.clone()
    overflowed[3, 5] = float("nan")
    with pytest.raises(InvalidValue, match=r"the right result is itself NaN, first at \[3, 5\]"):
        assert_close(overflowed, overflowed)


def test_a_right_first_tile_points_to_the_numbering_of_tiles(matrices):
    right = matrices[2]
    wrong = right.roll(16, dims=1)
    wrong[:16, :16] = right[:16, :16]
    assert "a tile's rows and columns" in message(wrong, right, tile=TILE)


def softmax(x, beyond):
    """Row softmax as of a kernel whose block holds one more number than the row."""
    padded = torch.cat([x, torch.full((len(x), 1), beyond)], dim=1)
    return padded.double().softmax(dim=1)[:, :-1].float()


def test_a_softmax_that_counts_what_lies_past_the_row_points_to_other(matrices):
    x = matrices[0]
    text = message(softmax(x, 0.0), softmax(x, -float("inf")), tile=(4, 64))
    assert "other=" in text
    assert "digits" not in text


def test_numbers_past_the_largest_of_a_dtype_are_recognized(matrices):
    right = matrices[2].half()
    wrong = right.clone()
    wrong[:, 3] = float("inf")
    assert "overflowed float16" in message(wrong, right)


@pytest.mark.parametrize(
    "spoil", [lambda y: y * 2, lambda y: y.roll(1, 1), lambda y: y + torch.arange(40.0)[:, None] ** 2]
)
def test_a_cause_speaks_of_any_kernel(matrices, spoil):
    text = message(spoil(matrices[2]), matrices[2], tile=TILE)
    assert "Likely cause" in text
    assert not any(word in text for word in ("along K", "product"))


def test_exchanged_scales_of_rows_and_columns_are_recognized(matrices):
    generator = torch.Generator().manual_seed(3)
    rows, columns = (0.01 + torch.rand(40, generator=generator) for _ in range(2))
    product = matrices[2]
    text = message(product * columns[:, None] * rows, product * rows[:, None] * columns, tile=TILE)
    assert "a factor of its row and a factor of its column" in text
    text = message(product * columns, product * rows[:, None] * columns, tile=TILE)
    assert "scale" in text
    assert "digits" not in text


def test_a_few_wrong_elements_are_not_blamed_on_digits(matrices):
    right = matrices[2]
    wrong = right.clone()
    wrong[::4] += 0.1 * right.std()
    text = message(wrong.flatten(), right.flatten())
    assert "digits" not in text


def test_a_weight_of_zero_times_a_nan_is_among_the_causes_of_a_result_of_nans(matrices):
    values = matrices[1].clone()
    values[30:] = float("nan")
    weights = matrices[0].clone()
    weights[:, 30:] = 0
    assert "0 times NaN" in message(weights @ values, matrices[2])


def test_a_short_accumulator_is_seen_at_a_large_k_and_not_at_a_small_one():
    generator = torch.Generator().manual_seed(2)

    def sum_in_half(a, b, step):
        total = torch.zeros(a.shape[0], b.shape[1], dtype=torch.float16)
        for k in range(0, a.shape[1], step):
            total += (a[:, k : k + step].float() @ b[k : k + step].float()).half()
        return total

    def product(k):
        signs = torch.where(torch.arange(k) < k // 2, 1.0, -1.0)
        a = (signs * (0.5 + 0.5 * torch.rand(16, k, generator=generator))).half()
        b = (0.5 + 0.5 * torch.rand(k, 16, generator=generator)).half()
        return sum_in_half(a, b, 32), (a.double() @ b.double()).half()

    generic = torch.randn(16, 64, generator=generator).half(), torch.randn(64, 16, generator=generator).half()
    assert_close(sum_in_half(*generic, 32), (generic[0].double() @ generic[1].double()).half())
    assert "float32" in message(*product(2048))


@pytest.mark.parametrize(
    ("actual", "part"),
    [
        (None, "NoneType"),
        (torch.zeros(3, 2), "swapped"),
        (torch.zeros(2, 3, dtype=torch.float64), "float64"),
        (torch.zeros(2, 3, 1), r"\(2, 3, 1\)"),
    ],
)
def test_a_wrong_kind_of_result_says_what_it_is(actual, part):
    with pytest.raises(WrongAnswer, match=part):
        assert_close(actual, torch.zeros(2, 3))


class AlwaysEqual(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


@pytest.mark.parametrize("actual", [8, 7.0, "7", None, True, AlwaysEqual(3)])
def test_only_the_same_plain_int_is_equal(actual):
    with pytest.raises(WrongAnswer):
        assert_equal(actual, 7, what="bytes")


def test_integers_must_agree_exactly():
    with pytest.raises(WrongAnswer):
        assert_close(torch.tensor([10**6 + 1]), torch.tensor([10**6]))


LARGE = """
import re, resource, torch
from pathlib import Path
from mlsys.grading.checks.assertions import assert_close
from mlsys.grading.verdicts import WrongAnswer

x = torch.randn(4096, 4096)
taken = int(re.search(r"VmData:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) << 10
resource.setrlimit(resource.RLIMIT_DATA, [taken + (400 << 20)] * 2)
try:
    assert_close(x, 2 * x)
except WrongAnswer as error:
    print(error)
"""


def test_what_is_wrong_with_a_large_result_is_said_in_little_memory():
    """In 400 MiB beside the result, the right one among them; a launcher has 2 GiB, with the inputs and CUDA in it."""
    done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True)
    assert "one factor and one offset" in done.stdout, done.stderr[-1000:]


def test_a_message_does_not_write_out_a_tensor_of_many_sides():
    with pytest.raises(WrongAnswer, match=r"got tensor of shape \(4, 4, 4, 4, 4, 4, 4, 4, 4, 4\), a Tensor"):
        assert_equal(torch.zeros((4,) * 10), 3, what="bytes")


@pytest.mark.parametrize(("actual", "expected"), [("inputs 37 53 91, and so on", "roof"), (10**30, 5), ([37, 53], 5)])
def test_a_hidden_test_shows_no_text_that_could_hold_its_inputs(actual, expected):
    with hidden_values(), pytest.raises(WrongAnswer) as caught:
        assert_equal(actual, expected, what="what")
    assert "37" not in str(caught.value)
    assert "000000" not in str(caught.value)
    with hidden_values(), pytest.raises(WrongAnswer, match="got 'above'"):
        assert_equal("above", "roof", what="what")
