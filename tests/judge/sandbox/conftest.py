import pytest
from helpers.sending import STUDENT, make_site, work_honestly

from mlsys.judge.sandbox.host import Limits, Sandbox

MIB = 2**20


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    return make_site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="session")
def shared_sandbox(site):
    limits = Limits(
        wall_s=20,
        cpu_s=1,
        data_bytes=1000 * MIB,
        memory_bytes=600 * MIB,
        scratch_bytes=8 * MIB,
        scratch_files=100,
        buffer_bytes=64 * MIB,
        kill_s=60,  # on a machine that does other work too, sixty processes take a while to end
    )
    with Sandbox(site, limits) as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(shared_sandbox):
    """A sandbox that a test may attack: afterwards honest work must succeed in it, and without a new start."""
    starts = shared_sandbox.starts
    yield shared_sandbox
    work_honestly(shared_sandbox)
    assert shared_sandbox.starts == starts


@pytest.fixture
def question(sandbox):
    with sandbox.open(STUDENT) as question:
        yield question
