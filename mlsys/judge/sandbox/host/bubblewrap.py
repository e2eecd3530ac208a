"""The bubblewrap command of a sandbox: the files that it shows, and the user that it runs as."""

import glob
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from mlsys.core.package import PACKAGE
from mlsys.judge.sandbox.protocol.places import FIRST_SANDBOX_UID, SCRATCH, SITE, SandboxError

_SYSTEM_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64")
_APPARMOR_SWITCH = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
_GPU_DEVICES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-caps")
_DRIVER = Path("/proc/driver/nvidia/gpus")
_GPU_FILES = ("/etc/ld.so.cache", "/etc/alternatives")  # to find libcuda and the C compiler that Triton calls

# Forking a process with several threads leaves the child with locks that nobody opens: libraries get one thread each.
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
    "LANG": "C.UTF-8",
    "USER": "student",
    "HOME": SCRATCH,
    "TMPDIR": SCRATCH,
    "TRITON_CACHE_DIR": f"{SCRATCH}/triton",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


def sandbox_command(
    site: Path, *, index: int, gpu: bool, visible: str = "", scratch_bytes: int, command: list[str]
) -> list[str]:
    """Return the command that runs another one inside a sandbox.

    Root becomes the sandbox's user first. A Python under root's home may be closed to that user, so root shows files in
    an outer bubblewrap.

    Args:
        site: folder to import from besides the virtual environment; `/site` inside.
        index: number of the sandbox.
        gpu: show the NVIDIA devices.
        visible: which of them CUDA shows; the file of one that is given by its UUID is the only one, if it is found.
        scratch_bytes: size of the writable folder.
        command: program and arguments.

    Raises:
        SandboxError: a program is missing, the site is closed to the sandbox's user, or Python's folder holds more than
            Python.
    """
    bubblewrap = _program("bwrap", "bubblewrap")
    files = {site.resolve(): Path(SITE)} | {folder: folder for folder in python_folders()}
    if gpu:
        files |= {path: path for path in map(Path, _GPU_FILES) if path.exists()}
    package = installed_package()
    if any(folder in package.parents for folder in shown_folders()):  # no more of it than the site has
        files[site.resolve() / "mlsys"] = package
    outer: list[str] = []
    if os.geteuid() == 0:
        if site.stat().st_mode & 0o005 != 0o005:
            raise SandboxError(f"the sandbox's user cannot read {site}; run: chmod -R go+rX {site}")
        outer = [bubblewrap, *_file_flags(files), *_bind("--dev-bind", "/proc"), *_bind("--dev-bind", "/dev")]
        outer += ["--dir", "/tmp", *_become(FIRST_SANDBOX_UID + index)]
        files = {inside: inside for inside in files.values()}
    flags = [*_namespace_flags(bubblewrap), *_environment_flags(gpu, visible), *_file_flags(files)]
    flags += ["--proc", "/proc", "--dev", "/dev"]
    if gpu:
        flags += [flag for device in _gpu_devices(visible) for flag in _bind("--dev-bind", device)]
    flags += ["--size", str(scratch_bytes), "--tmpfs", SCRATCH, "--remount-ro", "/dev", "--remount-ro", "/"]
    return [*outer, bubblewrap, *flags, *command]


def unsandboxed_command(*, index: int, gpu: bool, visible: str = "", scratch: Path, command: list[str]) -> list[str]:
    """Return the command that runs another one without bubblewrap; root still becomes the sandbox's user.

    Args:
        index: number of the sandbox.
        gpu: whether kernels are compiled, not interpreted.
        visible: which of the GPUs CUDA shows.
        scratch: a folder of the sandbox's user.
        command: program and arguments.

    Raises:
        SandboxError: setpriv is missing.
    """
    environment = {name: value.replace(SCRATCH, str(scratch)) for name, value in _environment(gpu, visible).items()}
    become = _become(FIRST_SANDBOX_UID + index) if os.geteuid() == 0 else []
    return [
        _program("env", "coreutils"),
        "-i",
        *(f"{name}={value}" for name, value in environment.items()),
        *become,
        *command,
    ]


def python_folders() -> list[Path]:
    """Return the folders of this Python and its virtual environment, without those in /usr and in each other.

    Raises:
        SandboxError: one is / or a home.
    """
    installed = Path(sys.executable).resolve().parent.parent
    folders = sorted({Path(sys.prefix), Path(sys.base_prefix), installed})
    for folder in folders:
        if folder in (Path("/"), Path.home()):
            raise SandboxError(f"Python is in {folder}, and students would see all of it: use a virtual environment")
    known = [Path("/usr"), *folders]
    return [
        folder for folder in folders if folder != known[0] and not any(parent in known for parent in folder.parents)
    ]


def installed_package() -> Path:
    """Return the folder of the package that runs here; installed as a wheel, it is among Python's own files."""
    return PACKAGE.resolve()


def shown_folders() -> list[Path]:
    """Return the folders of this machine that a sandbox shows, besides the site.

    Raises:
        SandboxError: Python's folder holds more than Python.
    """
    system = (Path("/", name) for name in _SYSTEM_FOLDERS)
    return [Path("/usr"), *filter(Path.exists, system), *python_folders(), *map(Path, _GPU_FILES)]


def explain(complaint: str) -> str:
    """Explain a complaint of bubblewrap, and what to do about it where that is known."""
    text = complaint.strip() or "it ended without a message"
    if _APPARMOR_SWITCH.exists() and _APPARMOR_SWITCH.read_text().strip() == "1":
        profile = f"abi <abi/4.0>,\nprofile bwrap {shutil.which('bwrap')} flags=(unconfined) {{\n  userns,\n}}\n"
        return (
            f"{text}\nAppArmor forbids user namespaces on this machine. Allow them for bubblewrap: write to "
            f"/etc/apparmor.d/bwrap\n\n{profile}\nand run: sudo apparmor_parser -r /etc/apparmor.d/bwrap"
        )
    if "namespace" in text or "Operation not permitted" in text:
        return f"{text}; allow user namespaces: in sysctl user.max_user_namespaces, or in the container's settings"
    return text


def _program(name: str, package: str) -> str:
    path = shutil.which(name, path="/usr/bin:/bin:/usr/local/bin")
    if path is None:
        raise SandboxError(f"{name} is not installed; run: sudo apt-get install {package}")
    return path


def _file_flags(files: dict[Path, Path]) -> list[str]:
    """Return the flags that show /usr and `files` (outside to inside), read-only."""
    flags = _bind("--ro-bind", "/usr")
    for name in _SYSTEM_FOLDERS:
        path = Path("/", name)
        if path.is_symlink():
            flags += ["--symlink", str(path.readlink()), str(path)]
        elif path.exists():
            flags += _bind("--ro-bind", str(path))
    for outside, inside in files.items():
        for parent in reversed(inside.parents[:-1]):  # bubblewrap's own would be closed to the sandbox's user
            flags += ["--perms", "0755", "--dir", str(parent)]
        flags += ["--ro-bind", str(outside), str(inside)]
    return flags


def _bind(how: str, path: str) -> list[str]:
    return [how, path, path]


def _become(user: int) -> list[str]:
    return [_program("setpriv", "util-linux"), "--reuid", str(user), "--regid", str(user), "--clear-groups"]


def _namespace_flags(bubblewrap: str) -> list[str]:
    flags = ["--unshare-all", "--unshare-user", "--cap-add", "CAP_SYS_ADMIN", "--die-with-parent", "--new-session"]
    # Known since 0.8; before that the system-call filter alone forbids further user namespaces.
    if _knows(bubblewrap, "--disable-userns"):
        flags += ["--disable-userns"]
    return flags


@cache
def _knows(bubblewrap: str, flag: str) -> bool:
    return flag in subprocess.run([bubblewrap, "--help"], capture_output=True, text=True, check=True).stdout


def _environment_flags(gpu: bool, visible: str) -> list[str]:
    return ["--clearenv", *(part for item in _environment(gpu, visible).items() for part in ("--setenv", *item))]


def _environment(gpu: bool, visible: str) -> dict[str, str]:
    environment = dict(_ENVIRONMENT)
    if not gpu:
        environment["TRITON_INTERPRET"] = "1"
        return environment
    if "LD_LIBRARY_PATH" in os.environ:  # some containers have libcuda outside the usual folders
        environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    if visible:
        environment["CUDA_VISIBLE_DEVICES"] = visible
    # One queue to the GPU in place of eight. The driver makes contexts one after the other on the whole machine: on an
    # H200, 16 processes wait 1.5 s for theirs and not 3.9 s. Kernels of several streams take turns.
    environment["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"
    return environment


def _gpu_devices(visible: str) -> list[str]:
    all_gpus = glob.glob("/dev/nvidia[0-9]*")  # noqa: PTH207 - an absolute pattern
    own = f"/dev/nvidia{device_number(visible)}"
    return [*([own] if own in all_gpus else all_gpus), *(path for path in _GPU_DEVICES if Path(path).exists())]


def device_number(uuid: str, driver: Path = _DRIVER) -> str:
    """Return the number in the name of a GPU's device file; empty where the driver does not tell.

    Args:
        uuid: of the GPU.
        driver: folder in which the driver keeps a file of information about each GPU.
    """
    for path in sorted(driver.glob("*/information")):
        lines = (line.partition(":") for line in path.read_text().splitlines())
        fields = {name.strip(): value.strip() for name, _, value in lines}
        if uuid and fields.get("GPU UUID") == uuid:
            return fields.get("Device Minor", "")
    return ""
