import math

import pytest

from mlsys.formatting import check, fmt


def test_digits_and_thousands():
    assert fmt(1048576, precision=0) == "1,048,576"
    assert fmt(1048576, precision=0, commas=False) == "1048576"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_went_wrong_is_not_printed(value):
    with pytest.raises(ValueError, match="divided by zero or overflowed"):
        fmt(value)


def test_failed_check_says_what_no_longer_holds():
    with pytest.raises(AssertionError, match="ridge moved"):
        check(condition=False, message="ridge moved")
