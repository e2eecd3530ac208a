"""Messages: what is read is what was written, and nothing of another shape."""

import json
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsys.grading.kernels.source import KernelSource
from mlsys.judge.sandbox.protocol.limits import Limits
from mlsys.judge.sandbox.protocol.shared_buffer import SharedBuffer, Tampered
from mlsys.judge.sandbox.protocol.transport import read_message, write_message
from mlsys.judge.shared import messages
from mlsys.judge.shared.messages import Cell, Message, header_of, is_failure, read_header

KERNEL = KernelSource("k", "def k(): pass")
CELLS = [Cell("setup", "setup s", "x = 1"), Cell("added", "your added cell 1", "y = 2\nz = 3", [1])]
REQUESTS = [
    messages.RunCells(CELLS, "cpu"),
    messages.RunCells([], "cuda", without_kernels=True),
    messages.GetValue("tile"),
    messages.CallFunction("f", {"tuple": [1, {"float": "nan"}]}, {"dict": []}, True),
    messages.RunSetup(CELLS[:1]),
    messages.LaunchKernel(KERNEL, {"TILE": 16}, "launch", {"tuple": []}, [3, 4], "float32", "cpu"),
    messages.RunTests("test_copy"),
    messages.Answer({"tensor": 0, "dtype": "float32", "strides": [1]}),
    messages.Answer(None, "x must be a tensor", True),
    messages.TrySubject("call", KERNEL, "right", None, {"tuple": []}, {"dict": []}),
    messages.PrepareReference(0, None, "matmul", "result", "fp16", (7, 5), "launch"),
    messages.PrepareReference(1, None, "matmul", "result", "fp16", (7, 5), "launch", KERNEL, {"TILE": 16}),
    messages.PrepareCandidate(1, None, KERNEL, {"TILE": 16}, "launch", "fp16", (8, 0), [3, 4], "float16"),
    messages.LoadLaps(0, 20),
    messages.LookAtMemory(),
    messages.RunLap(2**62 - 1),
    messages.ReadOutput(3, 0, 2**21),
    messages.CompareOutput(5, 3, 0, {"tensor": 0, "dtype": "float32", "strides": [1]}),
    messages.EndLaps(),
    messages.MeasureRates(anew=False),
]
REPLIES = [
    messages.Done(),
    messages.TakenMemory(2**34),
    messages.Value([None, True, 1, 1.5, "x"]),
    messages.IsFunction(),
    messages.CallSubject({"tuple": [1]}, {"dict": []}),
    messages.SubjectCalled([1], "", False, True),
    messages.Failure("error", "ValueError: x", ["your answer q, line 1: f()"]),
    messages.ReferencePrepared(1e-3, [3, 4], "float16", 12, 96, "a device", 2**30),
    messages.CandidatePrepared(1e-3, 2**29),
    messages.LapTime(0.5),
    messages.Comparison(False),
    messages.DeviceRates(4e12, 8e14, 2**25),
]
KINDS = [*get_args(messages.StudentRequest), *get_args(messages.LauncherRequest), *map(type, REPLIES)]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def through_the_wire(message):
    buffer = SharedBuffer.create(2**12)
    written = write_message(buffer, "n", header_of(message), [], Limits())
    return read_message(buffer, written, Limits(), "n")[1].header


def without(header, name):
    return {key: value for key, value in header.items() if key != name}


@pytest.mark.parametrize("message", [*REQUESTS, *REPLIES], ids=lambda message: type(message).__name__)
def test_a_message_comes_out_as_it_went_in(message):
    assert read_header(through_the_wire(message), type(message)) == message
    assert read_header(through_the_wire(message), *KINDS) == message


def test_every_kind_is_tried_and_has_a_name_of_its_own():
    assert {type(message) for message in (*REQUESTS, *REPLIES)} == set(KINDS) == set(Message.__subclasses__())
    names = [header_of(message)["type"] for message in (*REQUESTS, *REPLIES)]
    assert len(set(names)) == len(KINDS)


@pytest.mark.parametrize("message", [*REQUESTS, *REPLIES], ids=lambda message: type(message).__name__)
def test_a_message_with_more_or_without_its_name_or_of_another_kind_is_none(message):
    header = header_of(message)
    others = [kind for kind in KINDS if kind is not type(message)]
    for changed in (header | {"more": 1}, header | {"type": "x"}, header | {"type": [header["type"]]}):
        with pytest.raises(Tampered):
            read_header(changed, *KINDS)
    with pytest.raises(Tampered):
        read_header(without(header, "type"), type(message))
    with pytest.raises(Tampered):
        read_header(header, *others)


@pytest.mark.parametrize("message", REPLIES, ids=lambda message: type(message).__name__)
def test_a_reply_lacks_nothing(message):
    header = header_of(message)
    for name in header:
        with pytest.raises(Tampered):
            read_header(without(header, name), type(message))


@pytest.mark.parametrize(
    ("reply", "change"),
    [
        (messages.Failure("error", "x", []), {"verdict": None}),
        (messages.Failure("error", "x", []), {"message": ["x"]}),
        (messages.Failure("error", "x", []), {"lines": "x"}),
        (messages.Failure("error", "x", []), {"lines": [1]}),
        (messages.LapTime(0.5), {"call_s": "0.5"}),
        (messages.LapTime(0.5), {"call_s": True}),
        (messages.LapTime(0.5), {"call_s": None}),
        (messages.Comparison(False), {"agrees": 1}),
        (messages.Comparison(False), {"agrees": "true"}),
        (messages.ReferencePrepared(1e-3, [3], "float16", 3, 12, "d", 0), {"elements": 3.0}),
        (messages.ReferencePrepared(1e-3, [3], "float16", 3, 12, "d", 0), {"out_shape": [True]}),
    ],
)
def test_a_field_of_another_type_is_not_taken_for_its_like(reply, change):
    with pytest.raises(Tampered, match="wrong shape"):
        read_header(header_of(reply) | change, type(reply))


@given(header=st.dictionaries(st.text(max_size=8), JSON, max_size=5))
@settings(max_examples=300, deadline=None)
def test_any_header_is_a_message_or_tampering(header):
    is_failure(header)
    try:
        message = read_header(header, *KINDS)
    except Tampered:
        return
    assert isinstance(message, Message)


@given(message=st.sampled_from([*REQUESTS, *REPLIES]), value=JSON, place=st.integers(0, 10))
@settings(max_examples=500, deadline=None)
def test_a_message_with_one_other_field_is_a_message_or_tampering(message, value, place):
    header = json.loads(json.dumps(header_of(message)))
    name = list(header)[place % len(header)]
    header[name] = value
    try:
        read = read_header(header, *KINDS)
    except Tampered:
        return
    # What is read says again what came, but for numbers: 1 may stand for 1.0.
    assert json.loads(json.dumps(header_of(read)))[name] == value
