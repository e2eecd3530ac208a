import collections
import enum
import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mlsys.judge.sandbox.protocol.shared_buffer import Tampered
from mlsys.judge.shared.values import MAX_ITEMS, NotSendable, decode, encode

plain = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(max_size=5)
values = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(plain, inner, max_size=3),
    max_leaves=10,
)


def there_and_back(value, **options):
    arrays = []
    written = json.loads(json.dumps(encode(value, arrays)))
    return decode(written, [array.copy() for array in arrays], **options)


@given(values)
def test_plain_values_arrive_with_their_types(value):
    assert repr(there_and_back(value)) == repr(value)


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool"])
def test_a_tensor_keeps_values_and_dtype(name):
    sent = torch.randn(3, 5).mul(3).to(getattr(torch, name))
    back = there_and_back((sent,))[0]
    assert back.dtype == sent.dtype
    assert torch.equal(back, sent)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.T,
        lambda x: x[::2, 1::3],
        lambda x: x.expand(2, 6, 10),
        lambda x: x[:0],
        lambda x: x[0, 0],
        lambda x: x.flip(0),
        lambda x: x.requires_grad_(),
        lambda x: torch.nn.Parameter(x),
        lambda x: torch._neg_view(x),
    ],
)
def test_views_and_subclasses_arrive_as_plain_tensors_of_the_same_values(view):
    sent = view(torch.arange(60.0).reshape(6, 10))
    for back in (there_and_back(sent), there_and_back(sent, strided=False)):
        assert type(back) is torch.Tensor
        assert not back.requires_grad
        assert np.array_equal(back.numpy(), sent.detach().resolve_neg().numpy())
    assert there_and_back(sent, strided=False).is_contiguous()


def test_strides_are_given_back_where_elements_do_not_overlap():
    wide = torch.zeros(8, 9)[::2, ::3]
    assert there_and_back(wide).stride() == wide.stride() == (18, 3)
    overlapping = torch.zeros(3).expand(4, 3)
    assert there_and_back(overlapping).is_contiguous()


@pytest.mark.parametrize("strides", [[64], [1 << 62], [10**19], [-1], [True], ["1"], [], [1, 1]])
def test_a_judge_gives_no_memory_for_strides(strides):
    array = np.ones(1000, np.float32)
    value = decode({"tensor": 0, "dtype": "float32", "strides": strides}, [array], strided=False)
    assert value.untyped_storage().nbytes() == array.nbytes


class Number(int):
    def __index__(self):
        return 99

    __int__ = __index__


class Text(str):
    def __eq__(self, other):
        return True

    def __str__(self):
        return "lie"

    __hash__ = str.__hash__
    __repr__ = __str__


class Pairs(dict):
    def items(self):
        return [(1, 1)]


class Color(enum.Enum):
    RED = 1


class Side(enum.IntEnum):
    LEFT = 4


class Cause(enum.StrEnum):
    EDGES = "edges"


Shape = collections.namedtuple("Shape", "m n")


@pytest.mark.parametrize(
    ("value", "plain_value"),
    [
        (Number(3), 3),
        (Text("x"), "x"),
        (Side.LEFT, 4),
        (Cause.EDGES, "edges"),
        (Shape(2, Number(5)), (2, 5)),
        (torch.Size([1, 2]), (1, 2)),
        (collections.OrderedDict(a=1), {"a": 1}),
        (collections.defaultdict(list, a=[Side.LEFT]), {"a": [4]}),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (Pairs(a=Pairs()), {"a": {}}),
        ({Cause.EDGES: 1, np.int64(2): 2}, {"edges": 1, 2: 2}),
        (np.float64(-0.0), -0.0),
        (np.float32(0.5), 0.5),
        (np.float64("inf"), float("inf")),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_of_a_derived_class_arrives_as_the_plain_one(value, plain_value):
    assert repr(there_and_back(value)) == repr(plain_value)


@pytest.mark.parametrize(
    "value",
    [
        object(),
        np.ones(2),
        np.longdouble(1),
        np.complex64(1),
        np.datetime64("2020-01-01"),
        {1, 2},
        b"x",
        lambda: 1,
        1j,
        torch.ones(2).to_sparse(),
        torch.ones(2, dtype=torch.complex64),
        torch.ones(2, device="meta"),
        {"key": object()},
        {(1, 2): 3},
        [[Color.RED]],
        [0] * MAX_ITEMS,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_plain_value_does_not_cross(value):
    with pytest.raises(NotSendable):
        encode(value, [])


@pytest.mark.parametrize(
    "value",
    [
        [1],
        {},
        {"tuple": 1},
        {"tuple": [], "list": []},
        {"float": "1e5"},
        {"dict": [[1]]},
        {"dict": [[{"list": []}, 1]]},
        {"dict": [[{"tensor": 0, "dtype": "float32", "strides": [1]}, 1]]},
        {"tensor": 1, "dtype": "float32", "strides": [1]},
        {"tensor": -1, "dtype": "float32", "strides": [1]},
        {"tensor": True, "dtype": "float32", "strides": [1]},
        {"tensor": 0, "dtype": "float64", "strides": [1]},
        {"tensor": 0, "dtype": "bfloat16", "strides": [1]},
        {"tensor": 0, "dtype": "float32"},
        {"pickle": "x"},
        {"list": [0] * (MAX_ITEMS + 1)},
        {"dict": [[number, 0] for number in range(MAX_ITEMS)]},
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_no_worker_writes_is_tampering(value):
    with pytest.raises(Tampered):
        decode(value, [np.ones(1, np.float32)])


def test_a_tensor_of_many_sides_does_not_cross():
    with pytest.raises(NotSendable, match="6 dimensions"):
        encode(torch.zeros((1,) * 6), [])


def test_a_tensor_that_is_named_twice_is_no_honest_value():
    arrays = []
    one = encode(torch.ones(3), arrays)
    with pytest.raises(Tampered):
        decode({"list": [one, one]}, arrays)
