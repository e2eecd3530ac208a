"""Predictions for two GPUs of one host against NCCL: `python -m pytest tests/scaling/test_two_gpus.py -m gpu`.

Collectives, copies and steps of a small stack of blocks run on two GPUs, and the record of what was measured, beside
what `mlsys.scaling` said before, is written to `tests/scaling/results`. Without two GPUs, the committed records are
held to the present predictions, and the programs that were measured to the gradients of one process.
"""

from pathlib import Path
from statistics import median

import pytest
import torch
from helpers import two_gpus
from helpers.on_gpu import read_records, write_record

from mlsys.models import Block
from mlsys.roofline import Roofline
from mlsys.scaling import BlockShare, Fabric, fabric, stack_time

RESULTS = Path(__file__).parent / "results"
LINK = "nvlink-4"
"""The link of an H100 or H200; its constants were fitted to other machines."""
VECTOR_FLOPS = 67e12
"""Peak of the vector units of both, in FLOP/s; memory limits what they do here."""
TOLERANCE = 0.25
"""Largest median error of the predictions of a kind, as a share of the measured time."""
LARGE = 2**23
"""Fewest bytes of a buffer whose time is compared; below, the host issues calls more slowly than the link serves them:
on the H200s of the record each takes 40 to 50 us, whatever its size."""


def link_s(what: str, size: int) -> float:
    """Predicted seconds of an operation on the link between the two GPUs."""
    joined = fabric(LINK)
    times = {
        "all-reduce": joined.all_reduce_time(size, 2),
        "reduce-scatter": joined.reduce_scatter_time(size, 2),
        "all-gather": joined.all_gather_time(size, 2),
        "all-to-all": joined.all_to_all_time(size, 2),
        "send": joined.send_time(size),
        "copy": joined.send_time(size),
        "copy both ways": joined.send_time(size),  # each direction has its own wires
    }
    return float(times[what].m_as("second"))


def step_s(row: dict, calibration: dict) -> dict[str, float]:
    """Predicted seconds of each way to share a step, from the rates of one GPU and of the link alone."""
    peaks = {"tensor": calibration["matrix_flops"], "vector": VECTOR_FLOPS}
    roof = Roofline("GPU", calibration["memory_bandwidth"], peaks, "tensor", "measured")
    heads = row["width"] // two_gpus.HEAD
    block = Block(width=row["width"], heads=heads, kv_heads=heads, mlp=4 * row["width"], dropout=False)

    def of(way: str, chips: int, sequences: int) -> float:
        layers, tokens = two_gpus.LAYERS, row["tokens"]
        time = stack_time(block, layers, tokens, sequences, chips=chips, way=way, chip=roof, fabric=fabric(LINK))
        return float(time.m_as("second"))

    sequences = row["sequences"]
    found = {"one_s": of("data", 1, sequences), "tensor_s": of("tensor", 2, sequences)}
    if sequences > 1:
        found["half_s"] = of("data", 1, sequences // 2)
        found["data_s"] = of("data", 2, sequences)
        found["data_overlapped_s"] = of("data, overlapped", 2, sequences)
    return found


def from_one_gpu_s(row: dict, calibration: dict) -> dict[str, float]:
    """Predicted seconds of the shared steps if the computing of one GPU is taken as measured.

    Tensor parallelism halves the products and repeats what is between them, so its part of the step is predicted.
    """
    said = step_s(row, calibration)
    free = Fabric("free", bandwidth=1e30)
    heads = row["width"] // two_gpus.HEAD
    block = Block(width=row["width"], heads=heads, kv_heads=heads, mlp=4 * row["width"], dropout=False)
    share = BlockShare(block, row["tokens"], row["sequences"], tensor_parallel=2, fused_attention=True)
    joined = sum(
        float((share.exchange_time(fabric(LINK), phase) - share.exchange_time(free, phase)).m_as("second"))
        for phase in ("forward", "backward")
    )
    exchanged = two_gpus.LAYERS * joined
    found = {"tensor_s": row["one_s"] * (said["tensor_s"] - exchanged) / said["one_s"] + exchanged}
    for name in ("data_s", "data_overlapped_s"):
        if name in said:
            found[name] = row["half_s"] + said[name] - said["half_s"]
    return found


def with_predictions(found: dict) -> dict:
    """A record with the predicted time beside each measured one."""
    links = [{**row, "predicted_s": link_s(row["what"], row["bytes"])} for row in found["links"]]
    steps = [
        {
            **row,
            "predicted": step_s(row, found["calibration"]),
            "predicted_from_one_gpu": from_one_gpu_s(row, found["calibration"]),
        }
        for row in found["steps"]
    ]
    return {**found, "link": LINK, "links": links, "steps": steps}


def errors(record: dict) -> dict[str, float]:
    """Median error of each kind of prediction, as a share of the measured time."""
    kinds: dict[str, list[float]] = {}
    for row in record["links"]:
        if row["bytes"] >= LARGE:
            kinds.setdefault(row["what"], []).append(row["predicted_s"] / row["measured_s"] - 1)
    for row in record["steps"]:
        for name, said in row["predicted"].items():
            kinds.setdefault(f"step, {name}", []).append(said / row[name] - 1)
        for name, said in row["predicted_from_one_gpu"].items():
            kinds.setdefault(f"step from one GPU, {name}", []).append(said / row[name] - 1)
    return {kind: median(map(abs, found)) for kind, found in kinds.items()}


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA GPUs of one host")
@pytest.mark.timeout(560)
def test_two_gpus_take_the_predicted_time():
    record = with_predictions(two_gpus.measure())
    write_record(RESULTS, record)  # first, so that a surprise is not lost
    for row in record["steps"]:
        for name in ("tensor_error", "data_error", "data_overlapped_error"):
            assert row.get(name, 0) < 0.05, row
    found = errors(record)
    print("\n".join(f"{kind}: {error:.1%}" for kind, error in found.items()))
    assert {kind: error for kind, error in found.items() if error > TOLERANCE} == {}


@pytest.mark.parametrize("record", read_records(RESULTS), ids=lambda record: record["device"])
def test_the_committed_record_agrees_with_the_present_predictions(record):
    found = errors(with_predictions(record))
    assert {kind: error for kind, error in found.items() if error > TOLERANCE} == {}


def test_two_processes_find_the_gradients_of_one():
    found = two_gpus.measure("cpu")
    for row in found["steps"]:
        for name in ("tensor_error", "data_error", "data_overlapped_error"):
            assert row[name] < 1e-6, row


def test_predictions_of_steps_are_in_the_order_that_the_exchange_gives_them():
    calibration = {"matrix_flops": 700e12, "memory_bandwidth": 4.2e12}
    for width, sequences in two_gpus.PLANS["cuda"]["steps"]:
        said = step_s({"width": width, "sequences": sequences, "tokens": 1024}, calibration)
        assert said["one_s"] / 2 < said["tensor_s"]
        if sequences > 1:
            assert said["one_s"] / 2 * 0.99 < said["half_s"] < said["data_overlapped_s"] < said["data_s"]
