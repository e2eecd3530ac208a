from typing import Any

import numpy as np
import pytest

from mlsys.core.arguments import int_at_most, non_negative, non_negative_int, one_of, positive_int
from mlsys.errors import InvalidValue, UserError


@pytest.mark.parametrize("value", [1, 64, np.int32(64), np.uint8(7), 10**30])
def test_integers_of_any_kind_pass_as_int(value: Any) -> None:
    assert positive_int("rows", value) == value
    assert type(positive_int("rows", value)) is int


@pytest.mark.parametrize(
    ("value", "nearest"),
    [(0, 1), (-3, 1), (2.7, 3), (64.0, 64), ("64", 64), (True, 1), (None, 1), (float("inf"), 1), (float("nan"), 1)],
)
def test_the_nearest_positive_integer_is_offered(value: Any, nearest: int) -> None:
    with pytest.raises(InvalidValue, match="rows must be a positive integer") as error:
        positive_int("rows", value)
    assert str(error.value).endswith(f"got {value!r}; the nearest is {nearest}")


def test_zero_passes_only_where_it_is_allowed() -> None:
    assert non_negative_int("padding", 0) == 0
    with pytest.raises(InvalidValue, match="padding must be an integer of 0 or more, got -1; the nearest is 0"):
        non_negative_int("padding", -1)


def test_upper_limit_says_why() -> None:
    assert int_at_most("tile", 3, 3, "the loop has no more") == 3
    with pytest.raises(InvalidValue, match=r"tile must be at most 3 \(the loop has no more\), got 4; the nearest is 3"):
        int_at_most("tile", 4, 3, "the loop has no more")


@pytest.mark.parametrize("value", [-0.5, float("nan"), float("inf"), "4", None, True])
def test_times_are_finite_numbers_of_zero_or_more(value: Any) -> None:
    with pytest.raises(InvalidValue, match="time must be a finite number of 0 or more"):
        non_negative("time", value)


@pytest.mark.parametrize(
    ("value", "hint"),
    [("wss", "did you mean 'ws'?"), ("OS", "did you mean 'os'?"), ("qqqq", "got 'qqqq'"), (3, "got 3")],
)
def test_unknown_choice_lists_what_is_allowed(value: Any, hint: str) -> None:
    with pytest.raises(InvalidValue, match="dataflow must be one of 'ws', 'os', 'is'") as error:
        one_of("dataflow", value, ("ws", "os", "is"))
    assert str(error.value).endswith(hint)


def test_errors_are_the_ones_the_command_line_reports() -> None:
    with pytest.raises(UserError):
        positive_int("rows", 0)
    with pytest.raises(ValueError, match="rows"):
        positive_int("rows", 0)
