"""Preflight check of a Ray cluster: whether it answers, requires a token, uses TLS, and accepts this program.

Ray itself retries for about 20 seconds and prints many lines meanwhile. Its error then states only that it could not
connect.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import grpc

REQUEST = "/ray.rpc.NodeInfoGcsService/GetClusterId"  # the first request that Ray itself makes; its answer is short
TLS_FILES = ("RAY_TLS_CA_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_SERVER_CERT")  # variables with the paths of files
LIMIT = 5.0  # seconds until a request times out

# Results of a request: accepted, token required, server without TLS, no answer, connection closed by the server, TLS
# handshake refused.
Result = Literal["accepted", "token", "no TLS", "no answer", "closed", "refused"]


@dataclass(frozen=True, slots=True)
class Preflight:
    """Result of a preflight check."""

    address: str
    token: bool | None = None  # whether the cluster requires a token; None if unknown
    tls: bool | None = None  # whether the cluster uses TLS; None if unknown
    refusal: str = ""  # reason why this program cannot connect; empty if it can


def is_loopback(address: str) -> bool:
    """Return whether an address can be reached from its own machine only.

    >>> [is_loopback(each) for each in ("127.0.0.1:6379", "localhost:6379", "[::1]:6379", "10.0.0.1:6379", "head:6379")]
    [True, True, True, False, False]
    """
    host = address.rpartition(":")[0].strip("[]") or address
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def preflight(address: str, environment: Mapping[str, str] = os.environ) -> Preflight:
    """Check the Ray cluster at ``host:port``.

    The first request has no token, because only such a request shows whether the cluster requires one.

    >>> preflight("127.0.0.1:1").refusal
    "There is no Ray cluster at '127.0.0.1:1': no server answers there."
    """
    try:
        import grpc
    except ModuleNotFoundError:
        return Preflight(address)  # without grpc, only Ray itself can check the connection
    tls = environment.get("RAY_USE_TLS", "0").lower() in ("1", "true")
    missing = [name for name in TLS_FILES if tls and not Path(environment.get(name, "")).is_file()]
    if missing:
        return Preflight(address, refusal=f"RAY_USE_TLS is set: {', '.join(missing)} must name files that are there.")
    with _quiet(), _channel(grpc, address, environment if tls else None) as channel:
        result, details = _request(grpc, channel, "")
        if result == "accepted":
            return Preflight(address, token=False, tls=tls)
        if result != "token":
            return _without_answer(address, result, details, tls)
        token = own_token(environment)
        if not token:
            why = (
                f"The Ray cluster at {address!r} requires a token: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or "
                "RAY_AUTH_TOKEN_PATH."
            )
            return Preflight(address, True, tls, why)
        if _request(grpc, channel, token)[0] == "token":
            return Preflight(
                address, True, tls, f"The Ray cluster at {address!r} has another token than the one given."
            )
    return Preflight(address, True, tls)


def own_token(environment: Mapping[str, str]) -> str:
    """Return the token that Ray would send, from the environment or from its file; empty without one.

    >>> own_token({"RAY_AUTH_MODE": "disabled", "RAY_AUTH_TOKEN": "secret"}), own_token({"RAY_AUTH_TOKEN": "secret"})
    ('', 'secret')
    """
    if environment.get("RAY_AUTH_MODE", "token").lower() != "token":
        return ""
    token = environment.get("RAY_AUTH_TOKEN", "")
    usual = Path(environment.get("HOME", "~")).expanduser() / ".ray" / "auth_token"
    path = Path(environment.get("RAY_AUTH_TOKEN_PATH") or usual)
    return token or (path.read_text().strip() if path.is_file() else "")


def _without_answer(address: str, result: Result, details: str, tls: bool) -> Preflight:
    if result == "no TLS":
        why = f"The Ray cluster at {address!r} does not use TLS: leave out RAY_USE_TLS, or turn it on there."
        return Preflight(address, None, False, why)
    if result == "closed" and not tls:
        why = (
            f"The server at {address!r} closes the connection. If the cluster uses TLS, set RAY_USE_TLS=1, "
            "RAY_TLS_SERVER_CERT, RAY_TLS_SERVER_KEY and RAY_TLS_CA_CERT."
        )
        return Preflight(address, None, None, why)
    if result in ("closed", "refused") and tls:
        return Preflight(address, None, None, f"The certificates are not accepted at {address!r}: {details}.")
    return Preflight(address, refusal=f"There is no Ray cluster at {address!r}: no server answers there.")


def _request(grpc: ModuleType, channel: grpc.Channel, token: str) -> tuple[Result, str]:
    """Make a request with a token, or without one if it is empty; return its result and the server's message."""
    metadata = [("authorization", f"Bearer {token}")] if token else []
    try:
        channel.unary_unary(REQUEST)(b"", timeout=LIMIT, metadata=metadata)
    except grpc.RpcError as error:
        details = str(error.details())
        if error.code() == grpc.StatusCode.UNAUTHENTICATED:
            return "token", details
        if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
            return "accepted", details  # the server has accepted the connection and the credentials
        last = details.rpartition(": ")[2] if "andshake" not in details else details[details.index("andshake") - 1 :]
        if "WRONG_VERSION_NUMBER" in details:
            return "no TLS", last
        return ("refused" if "andshake" in details else "closed" if "closed" in details else "no answer"), last
    return "accepted", ""


@contextmanager
def _channel(grpc: ModuleType, address: str, secure: Mapping[str, str] | None) -> Iterator[grpc.Channel]:
    options = [("grpc.enable_http_proxy", 0)]  # Ray itself ignores HTTP proxies too
    if secure is None:
        channel = grpc.insecure_channel(address, options)
    else:
        files = [Path(secure[name]).read_bytes() for name in TLS_FILES]
        channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(*files), options)
    try:
        yield channel
    finally:
        channel.close()


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the log of grpc within the block, because the caller reports failed handshakes itself.

    Grpc reads ``GRPC_VERBOSITY`` when it connects for the first time.
    """
    before = os.environ.get("GRPC_VERBOSITY")
    os.environ["GRPC_VERBOSITY"] = "NONE"
    try:
        yield
    finally:
        if before is None:
            del os.environ["GRPC_VERBOSITY"]
        else:
            os.environ["GRPC_VERBOSITY"] = before
