"""A fleet with TLS: a class comes out as without, and whoever has no good certificate gets a sentence."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from helpers.cluster import Cluster
from rich.console import Console

from mlsys.classroom.batch.task import Task
from mlsys.classroom.intake.canonical import released_lab
from mlsys.classroom.store.run import Terms
from mlsys.cli.main import main
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError

distributed = pytest.importorskip("distributed", reason="distributed is not installed: mlsys[fleet] has it")
pytest.importorskip("cryptography", reason="cryptography is not installed: mlsys[serve] has it")

import dask  # noqa: E402

from mlsys.fleet import worker as on_worker  # noqa: E402
from mlsys.fleet.connection import WORKER, connect  # noqa: E402
from mlsys.fleet.pool import FleetPool  # noqa: E402

QUIET = Console(quiet=True)
TLS = "distributed.comm.tls"
Files = dict[str, str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of two clusters, each with its key, and a text that is none."""
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("own", "other"):
        made = distributed.Security.temporary()
        (folder / f"{name}.pem").write_text(made.tls_client_cert)
        (folder / f"{name}.key").write_text(made.tls_client_key)
    (folder / "text.pem").write_text("no certificate")
    return folder


def files(folder: Path, cert: str = "own", key: str = "", authority: str = "own") -> Files:
    """Configuration of dask in which every part has this certificate."""
    found = {f"{TLS}.ca-file": f"{folder / authority}.pem"}
    for role in ("scheduler", "worker", "client"):
        found[f"{TLS}.{role}.cert"] = f"{folder / cert}.pem"
        found[f"{TLS}.{role}.key"] = f"{folder / (key or cert)}.key"
    return found


@pytest.fixture(scope="module")
def cluster(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    given = files(folder)
    with pytest.MonkeyPatch.context() as patch, dask.config.set(given):
        for name, value in given.items():
            patch.setenv("DASK_" + name.upper().replace(".", "__").replace("-", "_"), value)
        with closing(Cluster(tmp_path_factory.mktemp("cluster"), scheme="tls")) as cluster:
            cluster.start_quick_workers(2)
            yield cluster


def test_a_class_is_graded_over_tls(cluster: Cluster, folder: Path, adding: tuple[Path, CourseTree, Path]) -> None:
    tree = adding[1]
    lab = released_lab(tree, "adding")
    names = ["ann", "bob", "cid", "dan"]
    given = [
        Task(one, "adding", lab.version, lab.notebook, f"{index:016x}", Terms("run", 1), "auto", 1, 100)
        for index, one in enumerate(names)
    ]
    with dask.config.set(files(folder)), FleetPool(tree, "adding", cluster.address, QUIET) as pool:
        pool.machine("auto")
        assert [address.partition(":")[0] for address in pool._workers] == ["tls", "tls"]
        found = list(pool.judge_all(given))
    assert sorted(one.student for one in found) == names
    assert not [one for one in found if one.refused]
    # Once, when it was started, its port was tried without a word; nothing else looks like an attack.
    assert cluster.said("scheduler").count("handshake failed") == 1


def of_worker(given: Files) -> Files:
    return {name: value for name, value in given.items() if ".worker." in name}


Wrong = Callable[[Path], Files]
REFUSED: dict[str, tuple[Wrong, str]] = {
    "nothing": (
        lambda _: dict.fromkeys(files(Path())),  # type: ignore[arg-type, return-value]
        r"tls://\S+ needs certificates, and dask's configuration has no distributed.comm.tls.ca-file and no "
        r"distributed.comm.tls.client.cert: write them into ~/.config/dask/tls.yaml",
    ),
    "nothing for a worker": (
        lambda folder: files(folder) | {f"{TLS}.worker.cert": ""},
        r"dask's configuration has no distributed.comm.tls.worker.cert: write",
    ),
    "no such file": (
        lambda folder: files(folder, authority="nowhere"),
        r"nowhere.pem cannot be read \(No such file or directory\): correct distributed.comm.tls.ca-file",
    ),
    "no certificate": (
        lambda folder: files(folder, authority="text"),
        r"these files are no certificates for TLS, .*ca-file: \S+text.pem.*Correct them in dask's configuration",
    ),
    "another key": (
        lambda folder: files(folder, key="other"),
        r"or the key is that of another one .*client.key: \S+other.key.*Correct them",
    ),
    "another authority": (
        lambda folder: files(folder, cert="other", authority="other"),
        r"the certificate of the scheduler at tls://\S+ is not trusted here .*if it has expired, make a new one; else "
        r"set distributed.comm.tls.ca-file to .*in place of \S+other.pem",
    ),
    "another certificate": (
        lambda folder: files(folder, cert="other"),
        r"the scheduler at tls://\S+ refuses the certificate \S+other.pem .*: set distributed.comm.tls.client.cert to",
    ),
    "another certificate of a worker": (
        lambda folder: (
            files(folder)
            | {f"{TLS}.worker.{part}": f"{folder / 'other'}.{end}" for part, end in (("cert", "pem"), ("key", "key"))}
        ),
        r"refuses the certificate \S+other.pem .*: set distributed.comm.tls.worker.cert to",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_wrong_certificate_is_named_with_what_to_do(what: str, cluster: Cluster, folder: Path) -> None:
    wrong, sentence = REFUSED[what]
    with dask.config.set(wrong(folder)), pytest.raises(UserError, match=sentence):
        connect(cluster.address, WORKER)


def test_both_commands_say_what_is_missing_and_end_with_status_2(
    cluster: Cluster,
    adding: tuple[Path, CourseTree, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(on_worker, "check_sandbox", lambda *_: "")
    monkeypatch.setattr(on_worker, "device_and_versions", lambda _: {"device": "cpu", "versions": {}})
    with dask.config.set(dict.fromkeys(files(Path()))):
        assert main(["worker", cluster.address]) == 2
        with pytest.raises(UserError, match="needs certificates"):
            FleetPool(adding[1], "adding", cluster.address, QUIET).__enter__()
    said = capsys.readouterr().err
    assert said.startswith(f"mlsys: {cluster.address} needs certificates")
    assert "Traceback" not in said


def test_a_plain_address_of_a_scheduler_with_tls_is_corrected(cluster: Cluster) -> None:
    plain = cluster.address.replace("tls", "tcp")
    with pytest.raises(UserError, match=rf"{plain} uses TLS: give its address as {cluster.address}, and set the cert"):
        connect(plain, WORKER)


def test_a_plain_address_is_refused_where_encryption_is_required(cluster: Cluster) -> None:
    plain = cluster.address.replace("tls", "tcp")
    with (
        dask.config.set({"distributed.comm.require-encryption": True}),
        pytest.raises(UserError, match=rf"{plain} is not encrypted, .*: give the address as {cluster.address}"),
    ):
        connect(plain)


def test_a_scheduler_without_tls_is_named(folder: Path, tmp_path: Path) -> None:
    with (
        closing(Cluster(tmp_path)) as plain,
        dask.config.set(files(folder)),
        pytest.raises(UserError, match=r"does not use TLS \(\w+\): start it with certificates too"),
    ):
        connect(plain.address.replace("tcp", "tls"))


@pytest.mark.proof
def test_a_worker_without_tls_cannot_join(cluster: Cluster, folder: Path) -> None:
    words = [cluster.address.replace("tls", "tcp"), "--no-nanny", "--death-timeout", "3"]
    done = subprocess.run(
        [sys.executable, "-m", "distributed.cli.dask_worker", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "Timed out starting worker" in done.stderr
    with dask.config.set(files(folder)), connect(cluster.address) as client:
        assert len(client.scheduler_info(n_workers=-1)["workers"]) == 2
