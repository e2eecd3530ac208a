"""What is said where a folder cannot be written."""

import errno
from pathlib import Path

import pytest

from mlsys.core.files import writing_to
from mlsys.errors import UserError


@pytest.mark.parametrize("name", ["kit", "kit/page.md", "."])
def test_an_error_about_the_folder_is_said_with_the_option_that_names_another(name: str) -> None:
    with (
        pytest.raises(UserError, match=r"^kit cannot be written \(closed\): name another folder with --to$"),
        writing_to(Path("kit"), "--to"),
    ):
        raise PermissionError(errno.EACCES, "closed", name)


def test_a_full_disk_is_said_though_the_error_names_no_file() -> None:
    with pytest.raises(UserError, match=r"kit cannot be written \(full\)"), writing_to(Path("kit"), "--to"):
        raise OSError(errno.ENOSPC, "full")


@pytest.mark.parametrize(
    "error",
    [FileNotFoundError(errno.ENOENT, "gone", "book/page.md"), BrokenPipeError(errno.EPIPE, "nobody reads")],
)
def test_an_error_about_something_else_stays_as_it_is(error: OSError) -> None:
    with pytest.raises(type(error)) as found, writing_to(Path("kit"), "--to"):
        raise error
    assert found.value is error
