"""New inputs of a race from the same values."""

import pytest
import torch

from mlsys.measure.reorder import put_reordered, put_with_kernel


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float16, torch.float32, torch.int64])
@pytest.mark.parametrize("size", [1, 31, 700, 4096, 5000])
def test_every_target_gets_all_values_in_an_order_of_its_own(dtype, size):
    values = torch.arange(size).to(dtype)
    targets = [torch.empty(size, dtype=dtype) for _ in range(3)]
    put_reordered(values, ["a", "b", "a"], targets)
    same = [one.view(torch.uint8) for one in targets]
    assert torch.equal(same[0], same[2])
    for one in targets:
        assert torch.equal(one.float().sort().values, values.float().sort().values)
    if size > 31:
        assert not torch.equal(same[0], same[1])
        assert not torch.equal(same[0], values.view(torch.uint8))


def test_a_target_keeps_its_strides():
    values = torch.randn(64 * 80)
    targets = [torch.empty(80, 64).T, torch.empty(64, 80)]
    put_reordered(values, ["a", "a"], targets)
    assert targets[0].stride() == (1, 64)
    assert torch.equal(*targets)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.float32])
@pytest.mark.parametrize("size", [4096, 5000])
def test_the_kernel_moves_the_runs_that_its_numbers_say(dtype, size):
    values = torch.randint(0, 250, (size,)).to(dtype)
    count = size // 32
    targets = [torch.empty(size, dtype=dtype) for _ in range(2)]
    put_with_kernel(values, 32, [3, 5], [1, count - 1], targets)
    for step, first, target in zip([3, 5], [1, count - 1], targets, strict=True):
        for run in range(count):
            place = (run * step + first) % count * 32
            assert torch.equal(target[run * 32 : run * 32 + 32], values[place : place + 32])
        assert torch.equal(target[count * 32 :], values[count * 32 :])
