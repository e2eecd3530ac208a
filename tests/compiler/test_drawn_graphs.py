import numpy as np
import pytest

onnxruntime = pytest.importorskip("onnxruntime")

from helpers.drawn_graphs import draw  # noqa: E402

from mlsys.compiler import compile  # noqa: E402
from mlsys.measure.device import torch_sees_gpu  # noqa: E402

DEVICE = "cuda" if torch_sees_gpu() else "cpu"

FEW, ALL = 8, 300


def check(seed):
    model, inputs = draw(seed)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    expected = session.run(None, dict(zip([entry.name for entry in session.get_inputs()], inputs, strict=True)))
    for got, want in zip(compile(model, device=DEVICE)(*inputs), expected, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * max(1, np.abs(want).max(initial=0)))


@pytest.mark.parametrize("seed", range(FEW))
def test_drawn_graphs_agree_with_onnxruntime(seed):
    check(seed)


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(FEW, ALL))
def test_many_drawn_graphs_agree_with_onnxruntime(seed):
    check(seed)
