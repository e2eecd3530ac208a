"""A connection to a cluster's scheduler, plain or with TLS, and what to do where there is none.

Dask reads the certificates from its configuration. What it says of a wrong one is a traceback, or nothing until a time
limit; so all of it is checked here first, and the scheduler is asked for one byte with each certificate.
"""

import socket
import ssl
from pathlib import Path

import distributed
from distributed.comm.addressing import get_address_host_port, parse_address

from mlsys.errors import UserError

HEAD, WORKER = ("client",), ("client", "worker")
"""Parts that a head, and a worker, play in a cluster; dask's configuration has a certificate for each part."""
CONNECT_S = 10.0
"""Longest time for a connection to come about, or for a short answer over it, in seconds."""
_TLS = "distributed.comm.tls"
_SEE = "SECURITY.md shows how"


def connect(address: str, roles: tuple[str, ...] = HEAD) -> distributed.Client:
    """Return a client of the scheduler at an address.

    Args:
        address: of the scheduler; with TLS it begins with `tls://`.
        roles: those of this process, `HEAD` or `WORKER`.

    Raises:
        UserError: the certificates are missing or wrong, or only one side uses TLS.
        OSError, ValueError: nothing answers there, or it is no address.
    """
    host, port = get_address_host_port(address)
    if port > 65535:
        raise ValueError(f"there is no port {port}")
    encrypted = parse_address(address)[0] == "tls"
    if not encrypted and distributed.Security().require_encryption:
        raise UserError(
            f"{address} is not encrypted, which dask's configuration requires (distributed.comm.require-encryption): "
            f"give the address as tls://{host}:{port}"
        )
    if encrypted:
        for role in roles:
            _shake_hands(address, _context(address, role), role)
    else:
        with socket.create_connection((host, port), CONNECT_S):
            pass  # a client would first start a thread, and try for as long as its time lasts
    try:
        return distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
    except AssertionError as error:
        raise TimeoutError(f"its client did not start within {CONNECT_S:g} s: this machine is too busy") from error
    except OSError as error:
        if not encrypted and _speaks_tls(host, port):
            raise UserError(
                f"the scheduler at {address} uses TLS: give its address as tls://{host}:{port}, and set the "
                f"certificates; {_SEE}"
            ) from error
        raise


def _context(address: str, role: str) -> ssl.SSLContext:
    """Return what dask would use for TLS in a role.

    Raises:
        UserError: dask's configuration lacks a file, or names one that cannot be used.
    """
    security, files = distributed.Security(), _files(role)
    needed = ("ca-file", f"{role}.cert")  # the key may be in the certificate's file
    missing = [f"{_TLS}.{name}" for name in needed if not files[name]]
    if missing:
        raise UserError(
            f"{address} needs certificates, and dask's configuration has no {' and no '.join(missing)}: write them "
            f"into ~/.config/dask/tls.yaml, or into a folder that DASK_CONFIG names; {_SEE}"
        )
    for name, value in files.items():
        if value and "\n" not in value:  # else it is the certificate itself
            try:
                Path(value).read_bytes()
            except OSError as error:
                raise UserError(
                    f"{value} cannot be read ({error.strerror}): correct {_TLS}.{name} in dask's configuration"
                ) from error
    try:
        context: ssl.SSLContext = security.get_connection_args(role)["ssl_context"]
    except (ssl.SSLError, ValueError) as error:
        named = ", ".join(f"{_TLS}.{name}: {value}" for name, value in files.items() if value and "\n" not in value)
        raise UserError(
            f"these files are no certificates for TLS, or the key is that of another one ({error}): {named}. Correct "
            f"them in dask's configuration; {_SEE}"
        ) from error
    return context


def _files(role: str) -> dict[str, str]:
    """Return the files that dask's configuration names for a role, by their names in it; empty where it has none."""
    of_role = distributed.Security().get_tls_config_for_role(role)
    return {
        "ca-file": of_role["ca_file"] or "",
        f"{role}.cert": of_role["cert"] or "",
        f"{role}.key": of_role["key"] or "",
    }


def _shake_hands(address: str, context: ssl.SSLContext, role: str) -> None:
    """See whether the scheduler and this process accept each other's certificates.

    Raises:
        UserError: one of them does not, or the scheduler does not use TLS.
        OSError: the scheduler is gone.
    """
    try:
        where = get_address_host_port(address)
        with socket.create_connection(where, CONNECT_S) as plain, context.wrap_socket(plain) as encrypted:
            encrypted.recv(1)  # dask's scheduler speaks first; a refusal comes here, after the handshake
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
        raise  # it ended in between
    except ssl.SSLCertVerificationError as error:
        raise UserError(
            f"the certificate of the scheduler at {address} is not trusted here ({error.verify_message}): if it has "
            f"expired, make a new one; else set {_TLS}.ca-file to the file of the authority that signed it, in place "
            f"of {_files(role)['ca-file']}"
        ) from error
    except ssl.SSLError as error:
        if "ALERT" in (error.reason or ""):
            raise UserError(
                f"the scheduler at {address} refuses the certificate {_files(role)[f'{role}.cert']} ({error.reason}): "
                f"set {_TLS}.{role}.cert to one that is signed by the authority in the scheduler's ca-file"
            ) from error
        raise UserError(
            f"the scheduler at {address} does not use TLS ({error.reason}): start it with certificates too; {_SEE}"
        ) from error


def _speaks_tls(host: str, port: int) -> bool:
    """Return whether what listens at a port answers as TLS does, with whatever certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((host, port), CONNECT_S) as plain, context.wrap_socket(plain):
            return True
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    except OSError:
        return False
