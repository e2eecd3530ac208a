"""Messages from a worker that lies."""

import contextlib
import json
import os
import time

import numpy as np
import pytest
from helpers.sending import STUDENT, run
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsys.judge.sandbox.host import Limits, Tampered
from mlsys.judge.sandbox.protocol.shared_buffer import DTYPES, SharedBuffer
from mlsys.judge.sandbox.protocol.transport import nesting, parse_json, read_message, write_message

SMALL = Limits(buffer_bytes=2**16)

# Names that lies are made of: the nonce of the request, and a message as an honest worker writes it.
LIAR = """
import json
nonce = channel._nonce
def say(tensors=[], header={}, **more):
    return json.dumps({"nonce": nonce, "tensors": tensors, "header": header} | more).encode()
send = channel.connection.send
"""


def open_files():
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def assert_tampered(question, source, match=None):
    with pytest.raises(Tampered, match=match) as first:
        question.request({"source": LIAR + source}, timeout_s=10)
    with pytest.raises(Tampered) as second:
        question.request({"source": "result = 1"})
    assert second.value is first.value
    assert question.close().kind == "tampered"


@pytest.fixture
def buffer():
    buffer = SharedBuffer.create(SMALL.buffer_bytes)
    yield buffer
    os.close(buffer.descriptor)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_goes_there_and_back(question, dtype):
    sent = np.random.default_rng(1).integers(0, 2, size=(3, 1, 5)).astype(dtype)
    [back] = question.request({"source": "results = tensors"}, [sent]).tensors
    assert back.dtype == sent.dtype
    np.testing.assert_array_equal(back, sent)


@pytest.mark.parametrize("shape", [(), (0,), (4, 0, 2), (1,), (2, 3, 4, 5)])
def test_every_shape_goes_there_and_back(question, shape):
    sent = np.random.default_rng(2).normal(size=shape)
    [back] = question.request({"source": "results = tensors"}, [sent]).tensors
    assert back.shape == shape
    np.testing.assert_array_equal(back, sent)


def test_strided_tensors_arrive_contiguous(question):
    whole = np.arange(60.0).reshape(6, 10)
    views = [whole.T, whole[::2, ::-3], np.broadcast_to(whole[0], (4, 10))]
    reply = question.request({"source": "result = [t.flags.c_contiguous for t in tensors]; results = tensors"}, views)
    assert reply.header["result"] == [True, True, True]
    for sent, back in zip(views, reply.tensors, strict=True):
        np.testing.assert_array_equal(back, sent)


def test_inputs_changed_inside_do_not_change_outside(question):
    sent = np.ones(1000)
    run(question, "tensors[0][:] = 7; os.pwrite(channel.buffer.descriptor, bytes(8000), 0)", sent)
    assert sent.sum() == 1000


def test_a_reply_stays_as_it_was_when_the_shared_buffer_changes_later(question):
    [back] = question.request({"source": "results = [tensors[0] * 2]"}, [np.ones(1000)]).tensors
    run(question, "os.pwrite(channel.buffer.descriptor, b'x' * 8000, 0)")
    assert back.sum() == 2000


def test_numbers_text_and_not_a_number_survive(question):
    sent = {"source": "result = header", "header": 1}
    value = [1, -(2**63), 2**64 - 1, 0.1, float("inf"), None, True, "\N{GREEK SMALL LETTER MU}\n\x00", {"a": []}]
    source = f"result = {value!r}".replace("inf", "float('inf')")
    assert run(question, source) == value
    assert np.isnan(run(question, "result = float('nan')"))
    assert sent


@pytest.mark.parametrize(
    ("lie", "match"),
    [
        ("send(b'garbage')", "JSON"),
        ("send(b'\\xff\\xfe{}')", "JSON"),
        ("send(b'[]')", "not a nonce"),
        ("send(b'null')", "not a nonce"),
        ("send(json.dumps({'header': {}, 'tensors': []}).encode())", "not a nonce"),
        ("send(say(header=[1]))", "not a nonce"),
        ("send(say(extra=1))", "not a nonce"),
        ("nonce = '0' * 32; send(say())", "another request"),
        ("nonce = 5; send(say())", "not a nonce"),
        ("send(say(header={'x': 1})[:-1])", "JSON"),
        ("send(b'[' * 100_000)", "deep"),
        ("send(b'{\"a\":' * 20_000 + b'1' + b'}' * 20_000)", "deep"),
        ("send(say(header={'x': 'LONG'}).replace(b'\"LONG\"', b'9' * 100_000))", "digits"),
        ("send(say(header={'x': 'LONG'}).replace(b'\"LONG\"', b'-' + b'9' * 30))", "digits"),
        ("send(say(header={'x': chr(0xD800)}))", "surrogates"),
        ("send(say(header={'x': 'y' * 150_000}))", "longer than"),
        ("send(say(tensors=[['float32', [1], 0]] * 100))", "100 tensors"),
    ],
)
def test_a_malformed_reply_is_tampering(question, lie, match):
    assert_tampered(question, lie, match)


@pytest.mark.parametrize(
    "tensor",
    [
        ["float32", [4], 1 << 26],
        ["float32", [1 << 24], 4],
        ["float32", [4], -4],
        ["float32", [-4], 0],
        ["float32", [-2, -2], 0],
        ["float32", [1 << 62, 1 << 62], 0],
        ["float32", [0, 1 << 62, 1 << 62], 0],
        ["float32", [1 << 40, 0], 0],
        ["float32", [True, 4], 0],
        ["float32", [4], True],
        ["float32", [4], None],
        ["float32", [4.0], 0],
        ["float32", 4, 0],
        ["float32", [1] * 17, 0],
        ["object", [1], 0],
        ["O", [1], 0],
        ["<f4", [1], 0],
        ["complex64", [1], 0],
        [5, [1], 0],
        ["float32", [1]],
        ["float32", [1], 0, 0],
        "float32",
        {},
    ],
    ids=str,
)
def test_a_tensor_that_is_none_is_tampering_or_empty(question, tensor):
    source = f"{LIAR}\nsend(say(tensors=[json.loads({json.dumps(json.dumps(tensor))})]))"
    if tensor == ["float32", [1 << 40, 0], 0]:
        assert question.request({"source": source}).tensors[0].shape == (1 << 40, 0)
        return
    assert_tampered(question, source)


def test_tensors_that_overlap_may_not_exceed_the_shared_buffer_together(question):
    assert_tampered(question, "send(say(tensors=[['uint8', [1 << 25], 0]] * 3))", "limit")


def test_booleans_are_zero_or_one(question):
    source = (
        f"{LIAR}\nos.pwrite(channel.buffer.descriptor, bytes([0, 1, 2, 255]), 0)\nsend(say(tensors=[['bool', [4], 0]]))"
    )
    [back] = question.request({"source": source}).tensors
    assert back.view(np.uint8).tolist() == [0, 1, 1, 1]


def test_a_reply_sent_twice_answers_only_once(question):
    assert question.request({"source": LIAR + "send(say()); send(say())"}).header == {}
    with pytest.raises(Tampered, match="another request"):
        question.request({"source": "result = 1"})


def test_replies_queued_in_advance_answer_nothing(question):
    source = LIAR + "channel.reply({'result': 0})\nfor _ in range(50): channel.reply({'result': 1})"
    assert run(question, source) == 0
    with pytest.raises(Tampered, match="another request"):
        run(question, "result = 2")


def test_descriptors_sent_along_are_tampering_and_do_not_arrive(question):
    before = open_files()
    lie = "socket.send_fds(channel.connection, [say()], [os.open('/dev/null', 0) for _ in range(20)])"
    assert_tampered(question, lie, "descriptors")
    assert open_files() <= before


def test_a_closed_connection_with_the_process_alive_is_tampering(sandbox, monkeypatch):
    monkeypatch.setattr(sandbox, "limits", Limits(kill_s=0.5))
    with sandbox.open(STUDENT) as question:
        assert_tampered(
            question, "channel.connection.close()\nos.closerange(3, 64)\ntime.sleep(100)", "closed its connection"
        )


def test_an_empty_message_is_a_closed_connection(sandbox, monkeypatch):
    monkeypatch.setattr(sandbox, "limits", Limits(kill_s=0.5))
    with sandbox.open(STUDENT) as question:
        assert_tampered(question, "send(b'')\ntime.sleep(100)")


@pytest.mark.parametrize(
    "attempt",
    [
        "os.ftruncate(fd, 0)",
        "os.ftruncate(fd, 1 << 40)",
        "os.pwrite(fd, b'x' * 4096, channel.buffer.size)",
        "os.posix_fallocate(fd, 0, channel.buffer.size + 1)",
        "import fcntl; fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)",
    ],
)
def test_the_shared_buffer_can_be_neither_resized_nor_sealed(question, attempt):
    source = f"""
fd = channel.buffer.descriptor
try:
    {attempt}
    result = "done"
except OSError as error:
    result = "refused"
"""
    assert run(question, source) == "refused"
    np.testing.assert_array_equal(
        question.request({"source": "results = tensors"}, [np.arange(5)]).tensors[0], range(5)
    )


@pytest.mark.parametrize("flags", ["os.O_APPEND", "os.O_NONBLOCK", "os.O_APPEND | os.O_ASYNC | os.O_NONBLOCK"])
def test_flags_set_on_the_descriptors_inside_do_not_reach_the_judge(question, flags):
    source = f"""
import fcntl
for fd in (channel.buffer.descriptor, 1):
    fcntl.fcntl(fd, fcntl.F_SETFL, {flags})
os.lseek(channel.buffer.descriptor, 12345, 0)
"""
    run(question, source)
    sent = np.arange(1000)
    assert run(question, "time.sleep(0.05); result = int(tensors[0].sum())", sent) == 499500


def test_what_cannot_be_sent_is_refused_before_sending(question):
    with pytest.raises(ValueError, match="limit"):
        question.request({"source": "x" * 200_000})
    with pytest.raises(ValueError, match="complex64"):
        question.request({"source": ""}, [np.ones(1, np.complex64)])
    with pytest.raises(ValueError, match="limit"):
        question.request({"source": ""}, [np.broadcast_to(np.uint8(1), (1 << 27,))])
    with pytest.raises(ValueError, match="limit"):
        question.request({"source": ""}, [np.ones(1)] * 65)
    assert run(question, "result = 1") == 1


@pytest.mark.parametrize("value", ["10**30", "[[[[]]]] * 1 + [" + "[" * 40 + "]" * 40 + "]", "'x' * 200_000"])
def test_an_honest_worker_learns_that_its_reply_is_beyond_the_limits(question, value):
    source = f"""
try: channel.reply({{"result": {value}}})
except ValueError as error: result = str(error)
"""
    assert "limit" in run(question, source)


# The reader by itself.

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


def depth_of(value):
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


@settings(max_examples=40)
@given(json_values)
def test_nesting_counts_brackets_outside_of_text(value):
    assert nesting(json.dumps(value).encode()) == depth_of(value)


@settings(max_examples=40)
@given(st.dictionaries(st.text(max_size=5).filter(lambda text: text.isascii()), json_values, max_size=4))
def test_a_header_is_read_as_it_was_written(header):
    buffer = SharedBuffer(-1, 0)
    written = write_message(buffer, "n", header, [], SMALL)
    assert read_message(buffer, written, SMALL, "n")[1].header == header


@settings(max_examples=40)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_tampering(buffer_bytes):
    with contextlib.suppress(Tampered):
        read_message(SharedBuffer(-1, 0), buffer_bytes, SMALL, "n")


@pytest.mark.parametrize(
    "text", [b'"' + b'\\"' * 60_000, b'"\\' * 60_000, b"[" * 120_000, b'""' * 60_000, b'{"' * 60_000]
)
def test_no_header_takes_long_to_refuse(text):
    started_s = time.process_time()
    with pytest.raises(Tampered):
        parse_json(text, Limits())
    assert time.process_time() - started_s < 0.5
