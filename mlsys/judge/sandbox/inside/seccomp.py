"""The system calls that student code may not make, as a filter that the kernel runs.

libseccomp builds the filter: it knows the numbers of system calls on every architecture and closes the second table of
x86-64. ctypes loads it, as its Python bindings need a compiler or are no longer kept. The filter is plain bytes, built
once and installed in every question.
"""

import ctypes
import errno
import mmap
import os
import signal
import socket
from ctypes import c_int, c_uint, c_uint32, c_uint64, c_void_p
from typing import Any

_ALLOW = 0x7FFF0000
_FAIL_WITH = 0x00050000
_NOT_EQUAL, _EQUAL, _MASKED_EQUAL = 1, 4, 7
_UNKNOWN_NAME = -1
_NEW_NAMESPACES = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
_TYPE_INTO_TERMINAL = (0x5412, 0x541C)
# Pipes of another size, leases and notices of changes, each of them kernel memory; then locks on parts of a file,
# which a process may have in any number. CUDA may lock files.
_FCNTL_SETS = (1024, 1026, 1031)
_FCNTL_LOCKS = (6, 7, 37, 38)

# fmt: off
DENIED = (
    # other processes
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "kcmp",
    "pidfd_getfd",
    # mounts and namespaces
    "mount", "umount2", "pivot_root", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "open_tree",
    "mount_setattr", "chroot", "unshare", "setns", "name_to_handle_at", "open_by_handle_at",
    # parts of the kernel that have had holes
    "bpf", "perf_event_open", "io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd", "keyctl",
    "add_key", "request_key", "fanotify_init", "personality",
    # memory that no limit counts
    "memfd_create", "memfd_secret", "shmget", "shmat", "shmctl", "semget", "msgget", "mq_open",
    "inotify_init", "inotify_init1", "vmsplice", "splice", "tee", "io_setup", "mlock", "mlock2", "mlockall",
    # CPU time beyond a question's own share
    "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr", "setpriority", "ioprio_set", "sync",
    "syncfs",
    # the machine
    "mbind", "set_mempolicy", "migrate_pages", "move_pages", "quotactl", "acct", "vhangup", "init_module",
    "finit_module", "delete_module", "kexec_load", "reboot", "swapon", "swapoff", "syslog", "sethostname",
    "setdomainname", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime",
)
# fmt: on


class _Condition(ctypes.Structure):
    """A condition on one argument of a system call (`struct scmp_arg_cmp`)."""

    _fields_ = (("argument", c_uint), ("operator", c_int), ("first", c_uint64), ("second", c_uint64))


class _Program(ctypes.Structure):
    """A filter as the kernel takes it (`struct sock_fprog`)."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", c_void_p))


def build_filter(gpu: bool) -> bytes:
    """Return the filter's instructions, eight bytes each.

    Args:
        gpu: allow what CUDA needs: shared mappings, of device files and of memory, and Unix sockets.

    Raises:
        OSError: libseccomp is missing, or too old to know one of the system calls.
    """
    library = _libseccomp()
    rules = library.seccomp_init(_ALLOW)

    def deny(name: str, *conditions: _Condition, error: int = errno.EPERM) -> None:
        array = (_Condition * len(conditions))(*conditions)
        failed = library.seccomp_rule_add_array(
            rules, _FAIL_WITH | error, system_call_number(name), len(conditions), array
        )
        if failed:
            raise OSError(-failed, f"libseccomp refused a rule for {name}")

    try:
        for name in DENIED:
            deny(name)
        for flag in _NEW_NAMESPACES:
            deny("clone", _Condition(0, _MASKED_EQUAL, flag, flag))
        deny("clone3", error=errno.ENOSYS)  # its flags are out of a filter's sight; the C library goes back to clone
        for request in _TYPE_INTO_TERMINAL:
            deny("ioctl", _Condition(1, _MASKED_EQUAL, 0xFFFFFFFF, request))
        for command in _FCNTL_SETS if gpu else (*_FCNTL_SETS, *_FCNTL_LOCKS):
            deny("fcntl", _Condition(1, _MASKED_EQUAL, 0xFFFFFFFF, command))
        # A process that ignores this signal has children that nobody waits for, whose CPU time is in no sum. It is told
        # that it does; else programs that set all signals would fail.
        deny("rt_sigaction", _Condition(0, _EQUAL, signal.SIGCHLD, 0), _Condition(1, _NOT_EQUAL, 0, 0), error=0)
        deny("prlimit64", _Condition(0, _NOT_EQUAL, 0, 0))
        # RLIMIT_DATA does not count shared memory. CUDA needs some (37 MB with the driver 580, else "out of memory" at
        # its start): there the watchdog alone sees it.
        if not gpu:
            deny("mmap", _Condition(3, _MASKED_EQUAL, mmap.MAP_SHARED, mmap.MAP_SHARED))
        # There is nothing to talk to, and socket buffers are memory that no limit counts.
        if gpu:
            deny("socket", _Condition(0, _NOT_EQUAL, socket.AF_UNIX, 0))
        else:
            deny("socket")
            deny("socketpair")
        return _export(library, rules)
    finally:
        library.seccomp_release(rules)


def install_filter(instructions: bytes) -> None:
    """Put this process and all its children under the filter, for good.

    Raises:
        OSError: the kernel refused it.
    """
    buffer = ctypes.create_string_buffer(instructions, len(instructions))
    program = _Program(len(instructions) // 8, ctypes.addressof(buffer))
    set_seccomp, mode_filter = 22, 2
    if ctypes.CDLL(None, use_errno=True).prctl(set_seccomp, mode_filter, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the kernel refused the system-call filter")


def system_call_number(name: str) -> int:
    """Return the number of a system call on this architecture; below -1 where the architecture has no such call.

    Raises:
        OSError: libseccomp is missing, or too old to know the name.
    """
    number: int = _libseccomp().seccomp_syscall_resolve_name(name.encode())
    if number == _UNKNOWN_NAME:
        raise OSError(f"libseccomp does not know the system call {name}: install version 2.5.3 or later")
    return number


def _export(library: Any, rules: int) -> bytes:
    descriptor = os.memfd_create("filter")
    try:
        failed = library.seccomp_export_bpf(rules, descriptor)
        if failed:
            raise OSError(-failed, "libseccomp could not write the filter")
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    finally:
        os.close(descriptor)


def _libseccomp() -> Any:
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError as error:
        raise OSError(f"{error}; install it: sudo apt-get install libseccomp2") from error
    library.seccomp_init.restype = c_void_p
    library.seccomp_init.argtypes = (c_uint32,)
    library.seccomp_release.argtypes = (c_void_p,)
    library.seccomp_export_bpf.argtypes = (c_void_p, c_int)
    library.seccomp_rule_add_array.argtypes = (c_void_p, c_uint32, c_int, c_uint, c_void_p)
    return library
