import dataclasses

import pytest

from mlsys.errors import UnknownName
from mlsys.grading import Verdict, compare, seal


def test_a_sealed_prediction_cannot_be_changed(capsys):
    sealed = seal(ratio=64, share=0.5)
    assert "ratio = 64, share = 0.5" in capsys.readouterr().out
    with pytest.raises(dataclasses.FrozenInstanceError):
        sealed.values = {}
    with pytest.raises(TypeError):
        sealed.values["ratio"] = 62


@pytest.mark.parametrize("missing", [None, float("nan"), float("inf"), True])
def test_a_prediction_that_is_not_made_is_not_implemented(missing):
    with pytest.raises(NotImplementedError, match="share is") as caught:
        seal(ratio=2, share=missing)
    assert Verdict.of(caught.value).name == "not implemented"


def test_measurements_stand_beside_predictions_and_missing_ones_wait():
    table = compare(seal(ratio=50, share=0.5), ratio=62.5)
    lines = str(table).splitlines()
    assert lines[1].split() == ["ratio", "50", "62.5", "1.25"]
    assert lines[2].split() == ["share", "0.5", "waits"]
    assert "<td>1.25</td>" in table._repr_html_()


def test_a_count_is_written_in_full_as_the_student_typed_it(capsys):
    sealed = seal(counted=1000, largest=65_536, gain=1.625, flops=6.4e12)
    assert "counted = 1,000, largest = 65,536, gain = 1.625" in capsys.readouterr().out
    lines = str(compare(sealed, largest=1_048_576)).splitlines()
    assert [line.split()[1:] for line in lines[1:]] == [
        ["1,000", "waits"], ["65,536", "1,048,576", "16.00"], ["1.62", "waits"], ["6.4e+12", "waits"],
    ]  # fmt: skip


def test_a_measurement_nobody_predicted_is_refused():
    with pytest.raises(UnknownName, match="ratio"):
        compare(seal(ratio=1), rate=2)


def test_names_are_escaped_in_html():
    assert "<b>" not in compare(seal(**{"<b>": 1.0}))._repr_html_()
