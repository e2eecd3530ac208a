import pytest
from helpers.sending import STUDENT, make_site, work_honestly

from mlsys.judge.sandbox.host import Limits, Slot

MIB = 2**20


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    return make_site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="session")
def shared_slot(site):
    limits = Limits(
        wall_s=20,
        cpu_s=1,
        data_bytes=500 * MIB,
        memory_bytes=600 * MIB,
        scratch_bytes=8 * MIB,
        scratch_files=100,
        arena_bytes=64 * MIB,
        kill_s=60,  # on a machine that does other work too, sixty processes take a while to end
    )
    with Slot(site, limits) as slot:
        yield slot


@pytest.fixture
def slot(shared_slot):
    """A slot that a test may attack: afterwards honest work must succeed in it, and without a new start."""
    starts = shared_slot.starts
    yield shared_slot
    work_honestly(shared_slot)
    assert shared_slot.starts == starts


@pytest.fixture
def question(slot):
    with slot.open(STUDENT) as question:
        yield question
