"""A race as a judge runs it, in three processes of a sandbox, on the CPU in place of a GPU."""

import shutil

import pytest
from helpers import cpu_launcher
from helpers.judging import COPY, LAUNCH, SETUP, question_cells

from mlsys.judge import backend, session
from mlsys.judge.gpu_lock import GpuLock
from mlsys.judge.run_tests import judge
from mlsys.judge.sandbox.host.sandbox import Sandbox
from mlsys.judge.sandbox.protocol.limits import Limits
from mlsys.judge.session import LAUNCHER, REFERENCE, STUDENT
from mlsys.judge.site import site
from mlsys.measure.gpu_jobs import CONTEXT_BYTES

RIVAL = COPY.partition("def copy(x)")[0].replace("copy_kernel", "rival_kernel")
TESTS = """
def inputs(draws, shape, dtype):
    return (draws.matrix(*shape),)
grading.speed(copy_kernel, config, shapes=[(4, 16), (3, 11)], inputs=inputs, expected=torch.clone, launch=launch_copy,
              reference=(rival_kernel, lambda shape, dtype: {"TILE": 16}))
"""
CONFIG = "\ndef config(shape, dtype):\n    return {'TILE': 16}\n"


@pytest.fixture(scope="module")
def racing_sandbox(tmp_path_factory):
    folder = tmp_path_factory.mktemp("racing") / "site"
    shutil.copytree(site(), folder)
    shutil.copy(cpu_launcher.__file__, folder)
    for path in (folder, folder.parent):
        path.chmod(0o755)
    with Sandbox(folder, Limits(cpu_s=30, wall_s=90), index=9) as sandbox:
        yield sandbox


@pytest.fixture
def race(racing_sandbox, monkeypatch, tmp_path):
    """Judge an answer by a race; returns the verdict, and each request with the processes that ran then."""
    entry = "cpu_launcher:serve"
    monkeypatch.setattr(session, "ENTRIES", session.ENTRIES | {LAUNCHER: entry, REFERENCE: entry})
    monkeypatch.setattr(backend, "known_rates", {})
    plain, asked = session.Session._exchange, []

    def exchange(self, role, header, *rest):
        asked.append((role, header["type"], set(self._processes)))
        return plain(self, role, header, *rest)

    monkeypatch.setattr(session.Session, "_exchange", exchange)

    def run(answer):
        lock = GpuLock(tmp_path / "lock")
        cells = question_cells(answer, SETUP + LAUNCH + RIVAL)
        with lock.shared():
            verdict = judge(racing_sandbox, cells, TESTS, "tests of q", device="cuda", seed=3, gpu_lock=lock)
        return verdict, asked

    return run


def test_a_race_goes_to_its_end_and_the_students_process_has_gone_before_it(race):
    verdict, asked = race(COPY + CONFIG)
    assert verdict.name in ("passed", "slow"), verdict
    assert verdict.fraction > 0
    assert "On a CPU" in verdict.message
    assert "the reference kernel" in verdict.message
    kinds = [kind for _, kind, _ in asked]
    assert {"prepare reference", "prepare candidate", "load", "lap", "output", "compare", "rest", "rates"} < set(kinds)
    assert kinds.count("prepare candidate") == 2
    assert "prepare candidate" not in kinds[kinds.index("load") :]  # the GPU is held exclusively once, for the timing
    timing = asked[kinds.index("prepare reference") :]
    assert not any(STUDENT in running for _, _, running in timing)
    assert {role for role, _, _ in timing} == {LAUNCHER, REFERENCE}
    assert {role for role, kind, _ in timing if kind in ("compare", "rates")} == {REFERENCE}


@pytest.mark.parametrize(
    ("part", "other", "name"),
    [
        ("tl.load(x_ptr + i, mask=i < size)", "2.0", "wrong answer"),
        ("mask=i < size)\n", "mask=i < size - 5)\n", "wrong answer"),
        ("mask=i < size)\n\n", "mask=i < size)\n    tl.store(x_ptr + i, 0.0, mask=i < size)\n\n", "out of bounds"),
        ("mask=i < size)\n\n", "mask=i < size)\n    tl.store(out_ptr + i + 999, 0.0)\n\n", "out of bounds"),
        ("mask=i < size)\n\n", "mask=i < size)\n    tl.static_assert(TILE == 1)\n\n", "error"),
    ],
)
def test_what_a_kernel_does_wrong_in_a_race_is_found(race, part, other, name):
    assert part in COPY
    assert race(COPY.replace(part, other, 1) + CONFIG)[0].name == name


def test_a_wrong_config_ends_before_any_process_of_a_race_starts(race):
    verdict, asked = race(COPY + CONFIG.replace("16", "'16'"))
    assert verdict.name == "wrong answer"
    assert {role for role, _, _ in asked} == {STUDENT}


@pytest.fixture
def taken(monkeypatch):
    """Have the launcher say of the GPU's memory what a test puts into the list, the last one for ever."""
    found = []

    def taken_bytes(side):
        assert side.role == LAUNCHER
        return found.pop(0) if len(found) > 1 else found[0]

    monkeypatch.setattr(backend._RemoteSide, "_taken_bytes", taken_bytes)
    monkeypatch.setattr(backend, "SETTLE_S", 0.2)
    return found


def test_memory_that_a_process_still_gives_back_does_not_stop_a_race(race, taken):
    taken += [80 * 2**30, 70 * 2**30, 2 * CONTEXT_BYTES]
    assert race(COPY + CONFIG)[0].name in ("passed", "slow")


def test_beside_another_job_nothing_is_timed_and_the_student_reads_why(race, taken):
    taken += [2 * CONTEXT_BYTES + 1]
    verdict, asked = race(COPY + CONFIG)
    assert verdict.name == "needs gpu"
    assert "3.0 GiB of this GPU's memory are in use, and this grading can hold 3.0 GiB" in verdict.message
    assert "would measure another job" in verdict.message
    assert not any(kind == "load" for _, kind, _ in asked)
