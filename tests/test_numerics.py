import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mlsys.errors import InvalidValue, UnknownName
from mlsys.numerics import (
    FLOAT_FORMATS,
    IntFormat,
    float_format,
    quantization_error,
    quantize,
    round_in_blocks,
    running_sum,
)

TORCH = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp8-e4m3": torch.float8_e4m3fn,
    "fp8-e5m2": torch.float8_e5m2,
}
NARROW = [name for name in TORCH if name != "fp32"]
VIEW = {8: torch.uint8, 16: torch.uint16, 32: torch.uint32}
finite = st.floats(allow_nan=False, allow_infinity=False, width=32)


def cast(values: NDArray[np.float64], name: str) -> torch.Tensor:
    """Through fp32, which the tests' values fit exactly: no double rounding.

    torch before 2.12 makes NaN of what is too large for fp8-e4m3 and saturates since, so it gets clipped values.
    """
    if name == "fp8-e4m3":
        values = np.clip(values, -448, 448)
    return torch.tensor(values, dtype=torch.float32).to(TORCH[name])


def test_values_of_all_codes_are_those_of_torch() -> None:
    for name in NARROW:
        target = float_format(name)
        codes = np.arange(2**target.bits)
        view = {8: np.uint8, 16: np.uint16}[target.bits]
        expected = torch.from_numpy(codes.astype(view)).view(TORCH[name]).to(torch.float64).numpy()
        np.testing.assert_array_equal(target.decode(codes), expected, err_msg=name)


@pytest.mark.parametrize("name", TORCH)
@given(values=st.lists(finite, min_size=1, max_size=30))
def test_rounding_is_that_of_torch(name: str, values: list[float]) -> None:
    x = np.array(values)
    np.testing.assert_array_equal(float_format(name).round(x), cast(x, name).to(torch.float64).numpy())


@pytest.mark.parametrize("name", NARROW)
def test_ties_and_neighbors_of_every_pair_of_numbers_round_like_torch(name: str) -> None:
    target = float_format(name)
    numbers = target.decode(np.arange(2 ** (target.bits - 1)))
    numbers = numbers[np.isfinite(numbers)]
    middle = (numbers[:-1] + numbers[1:]) / 2
    x = np.concatenate(
        [middle, np.nextafter(middle.astype(np.float32), 0), np.nextafter(middle.astype(np.float32), 1e9)]
    )
    x = np.concatenate([x, -x])
    np.testing.assert_array_equal(target.round(x), cast(x, name).to(torch.float64).numpy())


@pytest.mark.parametrize("name", TORCH)
@given(values=st.lists(finite, min_size=1, max_size=30))
def test_codes_are_the_bits_of_torch(name: str, values: list[float]) -> None:
    target, x = float_format(name), np.array(values)
    stored = cast(x, name)
    numbers = ~torch.isnan(stored.to(torch.float32)).numpy()
    bits = stored.view(VIEW[target.bits]).to(torch.int64).numpy()
    np.testing.assert_array_equal(target.encode(x)[numbers], bits[numbers])


@pytest.mark.parametrize("name", FLOAT_FORMATS)
def test_decoding_undoes_encoding_for_every_code(name: str) -> None:
    target = float_format(name)
    rng = np.random.default_rng(7)
    codes = np.arange(2**target.bits) if target.bits <= 16 else rng.integers(0, 2**target.bits, 50_000)
    numbers = target.decode(codes)
    valid = np.isfinite(numbers)
    np.testing.assert_array_equal(target.encode(numbers[valid]), codes[valid])


@pytest.mark.parametrize("name", TORCH)
def test_limits_are_those_of_torch(name: str) -> None:
    target, info = float_format(name), torch.finfo(TORCH[name])
    assert (target.bits, target.max, target.min_normal, target.epsilon) == (info.bits, info.max, info.tiny, info.eps)
    assert target.min_subnormal == float(target.decode(1))


@pytest.mark.parametrize(
    ("name", "bits", "largest", "epsilon"),
    [("tf32", 19, (2 - 2**-10) * 2.0**127, 2**-10), ("fp4-e2m1", 4, 6.0, 0.5), ("fp16", 16, 65504, 9.765625e-4)],
)
def test_limits_that_the_course_states(name: str, bits: int, largest: float, epsilon: float) -> None:
    target = float_format(name)
    assert (target.bits, target.max, target.epsilon) == (bits, largest, epsilon)


def test_fp4_has_its_sixteen_numbers() -> None:
    assert sorted(set(np.abs(float_format("fp4-e2m1").decode(np.arange(16))))) == [0, 0.5, 1, 1.5, 2, 3, 4, 6]


@given(values=st.lists(finite, min_size=1, max_size=20))
def test_tf32_keeps_ten_bits_of_the_mantissa_of_fp32(values: list[float]) -> None:
    x = np.array(values, dtype=np.float32)
    rounded = float_format("tf32").round(x)
    fits = np.isfinite(rounded)
    low_bits = rounded[fits].astype(np.float32).view(np.uint32) & 0x1FFF
    assert not low_bits.any()
    assert (np.abs(rounded - x)[fits] <= np.maximum(np.abs(x[fits]) * 2.0**-11, 2.0**-137)).all()


@given(name=st.sampled_from(list(FLOAT_FORMATS)), values=st.lists(finite, min_size=2, max_size=20))
def test_rounding_is_idempotent_and_keeps_order(name: str, values: list[float]) -> None:
    target, x = float_format(name), np.sort(np.array(values))
    rounded = target.round(x, saturate=True)
    np.testing.assert_array_equal(target.round(rounded), rounded)
    assert (np.diff(rounded) >= 0).all()


@pytest.mark.parametrize(
    ("name", "value", "usual", "unsaturated", "saturated"),
    [
        ("fp16", 65520.0, np.inf, np.inf, 65504.0),
        ("fp16", -1e9, -np.inf, -np.inf, -65504.0),
        ("fp8-e5m2", 1e9, np.inf, np.inf, 57344.0),
        ("fp8-e4m3", 465.0, 448.0, np.nan, 448.0),
        ("fp8-e4m3", -np.inf, -448.0, np.nan, -448.0),
        ("fp8-e4m3", 464.0, 448.0, 448.0, 448.0),
        ("fp4-e2m1", 100.0, 6.0, 6.0, 6.0),
    ],
)
def test_overflow_goes_where_the_format_says(
    name: str, value: float, usual: float, unsaturated: float, saturated: float
) -> None:
    target = float_format(name)
    np.testing.assert_array_equal(target.round(value), usual)
    np.testing.assert_array_equal(target.round(value, saturate=False), unsaturated)
    np.testing.assert_array_equal(target.round(value, saturate=True), saturated)


def test_nan_stays_nan_where_there_is_one() -> None:
    for name in TORCH:
        target = float_format(name)
        assert np.isnan(target.round(np.nan))
        assert np.isnan(target.decode(target.encode(np.nan)))
    assert np.isinf(float_format("bf16").decode(float_format("bf16").encode(np.inf)))


def test_small_gradient_is_subnormal_in_fp16_and_normal_in_bf16() -> None:
    fp16, bf16 = float_format("fp16"), float_format("bf16")
    assert fp16.min_normal == pytest.approx(6.1e-5, rel=1e-2)
    assert fp16.min_subnormal < 1e-6 < fp16.min_normal
    assert bf16.min_normal < 1e-6
    assert abs(float(bf16.round(1e-6)) - 1e-6) < abs(float(fp16.round(1e-6)) - 1e-6)


@pytest.mark.parametrize("value", [1.0, -0.1, 65504.0, 6e-8, 0.0, -0.0])
def test_layout_is_the_bits_of_numpy(value: float) -> None:
    sign, exponent, mantissa = float_format("fp16").layout(value)
    assert (len(sign), len(exponent), len(mantissa)) == (1, 5, 10)
    assert int(sign + exponent + mantissa, 2) == int(np.float16(value).view(np.uint16))


def test_running_sum_of_ones_stops_where_the_accumulator_has_no_next_number() -> None:
    assert running_sum(np.ones(4096), "fp16") == 2048
    assert running_sum(np.ones(400), "bf16") == 256
    assert running_sum(np.ones(4096), "fp32") == 4096


def test_running_sum_is_that_of_numpy_in_half_precision() -> None:
    values = np.random.default_rng(0).random(300).astype(np.float16)
    total = np.float16(0)
    for value in values:
        total = np.float16(total + value)
    assert running_sum(values, "fp16") == total


@pytest.mark.parametrize(("bits", "dtype"), [(8, np.int8), (16, np.int16), (32, np.int32)])
def test_integers_are_those_of_numpy(bits: int, dtype: type[np.signedinteger]) -> None:
    target, info = IntFormat(bits), np.iinfo(dtype)
    assert (target.min, target.max) == (info.min, info.max)
    values = np.array([info.min, -1, 0, 1, info.max])
    np.testing.assert_array_equal(target.encode(values), values.astype(dtype).view(f"u{bits // 8}"))
    np.testing.assert_array_equal(target.decode(target.encode(values)), values)


def test_int4_holds_sixteen_numbers_in_twos_complement() -> None:
    assert IntFormat(4).decode(np.arange(16)).tolist() == [*range(8), *range(-8, 0)]
    assert IntFormat(4).layout(-8) == "1000"
    assert IntFormat(4).round([100, -100, 2.5, 3.5]).tolist() == [7, -8, 2, 4]


tensors = st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=40).map(np.array)


@given(x=tensors, bits=st.sampled_from([4, 8]), scheme=st.sampled_from(["symmetric", "affine"]))
def test_quantization_error_is_at_most_half_a_step(x: NDArray[np.float64], bits: int, scheme: str) -> None:
    q = quantize(x, bits, scheme)
    error = quantization_error(x, q)
    assert error.largest <= float(q.scale) / 2 * (1 + 1e-6) + 1e-12
    assert error.rms <= error.largest * (1 + 1e-9)
    assert IntFormat(bits).min <= q.codes.min() <= q.codes.max() <= IntFormat(bits).max


@given(x=tensors, bits=st.sampled_from([4, 8]), scheme=st.sampled_from(["symmetric", "affine"]))
def test_zero_stays_exact(x: NDArray[np.float64], bits: int, scheme: str) -> None:
    with_zero = np.append(x, 0.0)
    assert quantize(with_zero, bits, scheme).dequantize()[-1] == 0


@pytest.mark.parametrize(("scheme", "lowest"), [("symmetric", -127), ("affine", -128)])
def test_quantized_values_are_those_of_torch(scheme: str, lowest: int) -> None:
    x = np.random.default_rng(1).normal(size=(5, 7)) + 0.7
    q = quantize(x, 8, scheme)
    expected = torch.fake_quantize_per_tensor_affine(
        torch.tensor(x, dtype=torch.float32), float(q.scale), int(q.zero_point), lowest, 127
    )
    np.testing.assert_allclose(q.dequantize(), expected.numpy(), rtol=1e-5)


def test_quantized_values_per_channel_are_those_of_torch() -> None:
    x = np.random.default_rng(2).normal(size=(6, 9)) * np.logspace(-3, 3, 6)[:, None]
    q = quantize(x, 8, axis=0)
    assert q.scale.shape == (6, 1)
    scale = torch.tensor(q.scale.ravel(), dtype=torch.float32)
    expected = torch.fake_quantize_per_channel_affine(
        torch.tensor(x, dtype=torch.float32), scale, torch.zeros(6, dtype=torch.int32), 0, -127, 127
    )
    np.testing.assert_allclose(q.dequantize(), expected.numpy(), rtol=1e-5)


def test_scales_per_channel_lose_less_when_channels_differ() -> None:
    x = np.random.default_rng(3).normal(size=(8, 64)) * np.logspace(-2, 2, 8)[:, None]
    whole, channels = quantize(x), quantize(x, axis=0)
    np.testing.assert_allclose(np.stack([quantize(row).dequantize() for row in x]), channels.dequantize(), rtol=1e-12)
    assert quantization_error(x[0], quantize(x[0])).snr_db > 35
    small = slice(0, 1)
    assert np.abs(x[small] - channels.dequantize()[small]).max() < np.abs(x[small] - whole.dequantize()[small]).max()


def test_affine_spends_no_codes_on_absent_signs() -> None:
    x = np.random.default_rng(4).random(1000)
    assert quantization_error(x, quantize(x, 8, "affine")).rms < quantization_error(x, quantize(x, 8)).rms * 0.6


def test_a_bit_more_gains_six_decibel() -> None:
    x = np.random.default_rng(5).uniform(-1, 1, 100_000)
    gain = quantization_error(x, quantize(x, 9)).snr_db - quantization_error(x, quantize(x, 8)).snr_db
    assert gain == pytest.approx(6.02, abs=0.15)


def test_all_zeros_quantize_without_error() -> None:
    for scheme in ("symmetric", "affine"):
        error = quantization_error(np.zeros(3), quantize(np.zeros(3), 8, scheme))
        assert (error.largest, error.snr_db) == (0, np.inf)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(UnknownName, match="did you mean 'fp8-e4m3'"):
        float_format("fp8-e4m3fn")
    with pytest.raises(InvalidValue, match="between 0 and 255"):
        float_format("fp8-e5m2").decode(256)
    with pytest.raises(InvalidValue, match="neither NaN nor infinity"):
        float_format("fp4-e2m1").round(np.nan)
    with pytest.raises(InvalidValue, match="neither NaN nor infinity"):
        IntFormat(8).round(np.inf)
    with pytest.raises(InvalidValue, match="between 0 and 15"):
        IntFormat(4).decode(-1)
    with pytest.raises(InvalidValue, match="2 or more"):
        quantize([1.0], bits=1)
    with pytest.raises(InvalidValue, match="axes 0 to 0"):
        quantize([1.0], axis=1)
    with pytest.raises(InvalidValue, match="not all finite"):
        quantize([np.nan])
    with pytest.raises(InvalidValue, match="did you mean 'affine'"):
        quantize([1.0], scheme="afine")
    with pytest.raises(InvalidValue, match="must agree"):
        quantization_error([1.0, 2.0], quantize([1.0]))


def test_blocks_round_as_one_block_after_the_other_does_in_torch() -> None:
    x = np.random.default_rng(3).standard_t(3, (5, 70))
    found = round_in_blocks(x, "fp8-e4m3", block=32)
    for row, rounded in zip(x, found, strict=True):
        for start in (0, 32, 64):
            part = row[start : start + 32]
            scale = max(abs(value) for value in part) / 448
            cast = torch.tensor(part / scale).to(torch.float8_e4m3fn).to(torch.float64).numpy()
            np.testing.assert_allclose(rounded[start : start + 32], scale * cast, rtol=1e-15)


@pytest.mark.parametrize(("form", "half_step"), [("int8", 1 / 254), ("int4", 1 / 14)])
def test_an_integer_in_a_block_is_at_most_half_a_step_off_and_the_largest_is_exact(form: str, half_step: float) -> None:
    x = np.random.default_rng(4).normal(size=(3, 4, 16))
    off = np.abs(round_in_blocks(x, form, block=16) - x)
    largest = np.abs(x).max(axis=-1, keepdims=True)
    assert (off <= largest * half_step * (1 + 1e-12)).all()
    assert off[np.abs(x) == largest].max() < 1e-15


def test_one_scale_for_all_is_the_symmetric_quantization() -> None:
    x = np.random.default_rng(5).normal(size=(8, 9))
    np.testing.assert_allclose(round_in_blocks(x, "int8"), quantize(x, bits=8).dequantize(), rtol=1e-15)
    np.testing.assert_array_equal(round_in_blocks(np.zeros((2, 8)), "fp4-e2m1", block=4), np.zeros((2, 8)))


def test_blocks_say_what_they_cannot_do() -> None:
    with pytest.raises(UnknownName, match="unknown format for blocks 'fp9'"):
        round_in_blocks([1.0], "fp9")
    with pytest.raises(InvalidValue, match="block"):
        round_in_blocks([1.0], "int8", block=0)
    with pytest.raises(InvalidValue, match="not all finite"):
        round_in_blocks([np.inf], "int8")
