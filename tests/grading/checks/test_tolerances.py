import math

import pytest

torch = pytest.importorskip("torch")

from mlsys.grading.checks import tolerances  # noqa: E402
from mlsys.grading.checks.tolerances import difference, errors_and_tolerance, is_close, rms_of  # noqa: E402


def test_what_is_allowed_follows_from_the_element_its_row_and_the_whole():
    expected = torch.tensor([[3.0, 4.0], [0.0, 0.0], [0.0, 1e6]])
    whole, last = math.sqrt((25 + 1e12) / 6), math.sqrt(1e12 / 2)
    _, allowed = errors_and_tolerance(expected, expected)
    due = 1e-5 * torch.tensor([[whole, whole], [whole, whole], [last, 1e6]], dtype=torch.float64)
    torch.testing.assert_close(allowed, due)


@pytest.mark.parametrize("shape", [(7, 300), (1, 1000), (1000,), (3, 4, 5), (1000, 1), (), (0, 4)])
def test_pieces_do_not_change_what_is_allowed(shape, monkeypatch):
    generator = torch.Generator().manual_seed(1)
    expected = torch.randn(shape, generator=generator)
    actual = expected + 2e-5 * torch.randn(shape, generator=generator)
    monkeypatch.setitem(tolerances.CHUNK_ELEMENTS, "cpu", 2**30)
    whole = difference(actual, expected) if expected.numel() else None
    close, rms = is_close(actual, expected), rms_of(expected)
    monkeypatch.setitem(tolerances.CHUNK_ELEMENTS, "cpu", 64)
    assert is_close(actual, expected) == close
    assert rms_of(expected) == pytest.approx(rms)
    if whole:
        pieces = difference(actual, expected)
        assert torch.equal(pieces.wrong, whole.wrong)
        assert (pieces.largest, pieces.relative_rms) == (whole.largest, pytest.approx(whole.relative_rms))


def test_the_first_rows_of_causal_attention_may_be_off_by_what_rounding_the_shares_costs():
    generator = torch.Generator().manual_seed(0)
    count, width = 1024, 64
    q, k, v = (torch.randn(8, count, width, generator=generator).half() for _ in "qkv")
    scores = (q.float() @ k.float().mT / 8).masked_fill(torch.ones(count, count).tril() == 0, -math.inf)
    right = (scores.double().softmax(2) @ v.double()).half()
    shares = (scores - scores.amax(2, keepdim=True)).exp()
    honest = (shares.half().float() @ v.float() / shares.sum(2, keepdim=True)).half()
    assert is_close(honest, right)
    forgot_the_mask = (scores.masked_fill(scores == -math.inf, 0.0).softmax(2) @ v.float()).half()
    assert not is_close(forgot_the_mask, right)
