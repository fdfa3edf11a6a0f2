"""Files on object stores and web servers, by fsspec: what is known about a file, and fetching it.

Every call has a limit: a server that sends nothing for a minute is given up. A connection that breaks is tried again.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from hogwild.errors import DataError, MissingExtraError

SILENCE_SECONDS = 60.0  # Longest time that a server may send nothing.
ATTEMPTS = 3  # How often a file is fetched if connections break.
_POLL_SECONDS = 0.1
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+)://")
_WEB = ("http", "https")
# The packages of common stores. fsspec knows more, and says which package each needs.
_PACKAGES = {
    "s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "hf": "huggingface_hub", "abfs": "adlfs", "az": "adlfs",
}  # fmt: skip
# What tells that a file has changed, by the names that file systems use.
_VERSION_KEYS = (
    "ETag", "etag", "e_tag", "Content-MD5", "Digest", "md5Hash", "content_md5", "crc32c", "blob_id", "sha256",
    "Last-Modified", "LastModified", "last_modified", "last_commit", "generation", "mtime", "created",
)  # fmt: skip

Progress = Callable[[str, int, int | None], None]  # (name of the file, bytes fetched, bytes in all if known)
Made = TypeVar("Made")
_progress: ContextVar[Progress | None] = ContextVar("progress of downloads", default=None)


@contextmanager
def showing_downloads(progress: Progress) -> Iterator[None]:
    """Call ``progress`` while files are fetched within the block."""
    token = _progress.set(progress)
    try:
        yield
    finally:
        _progress.reset(token)


def is_remote(source: object) -> bool:
    """Return whether a source is an address such as ``s3://bucket/file``.

    >>> is_remote("https://example.org/a.svm"), is_remote("a.svm"), is_remote("file:///a.svm")
    (True, False, False)
    """
    match = _SCHEME.match(source) if isinstance(source, str) else None
    return match is not None and match[1].lower() not in ("file", "local")


def without_secrets(address: str) -> str:
    """Return an address without user, password and query, which may hold a signature.

    >>> without_secrets("https://me:secret@example.org/a.svm?X-Amz-Signature=1")
    'https://example.org/a.svm'
    """
    scheme, _, rest = address.partition("://")
    place, slash, path = rest.partition("/")
    if scheme.lower() in _WEB:
        path = path.partition("?")[0].partition("#")[0]
    return f"{scheme}://{place.rpartition('@')[2]}{slash}{path}"


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """File on a server, at one of its versions."""

    system: Any  # the file system of fsspec
    path: str  # its name in that system
    shown: str  # its address for messages
    size: int | None  # None: the server does not say
    version: str  # another one means that the file has changed

    @property
    def name(self) -> str:
        """The last part of its address, which is a name of a local file.

        >>> RemoteFile(None, "b/a%20b.svm?versionId=7", "https://b/a%20b.svm", None, "").name
        'a b.svm'
        """
        last = unquote(urlsplit(self.shown).path.rstrip("/").rpartition("/")[2])
        return re.sub(r"[\x00-\x1f/\\]", "_", last).lstrip(".")[:200] or "file"

    def fetch(self, to: Path) -> None:
        """Write the whole file to a local path.

        Raises
        ------
        DataError
            If it cannot be fetched as a whole.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                _within_limit(lambda: self.system.get_file(self.path, str(to)), self.shown, to, self.size)
            except (_BrokenError, _SilenceError) as error:
                if attempt == ATTEMPTS:
                    raise DataError(
                        f"{error} (after {_bytes(to)} of {self._size_text()} bytes, {ATTEMPTS} times)", path=self.shown,
                        remedy="Try again later.",
                    ) from None  # fmt: skip
                time.sleep(_POLL_SECONDS * attempt)
            else:
                break
        if self.size is not None and _bytes(to) != self.size:
            raise DataError(
                f"the server has sent {_bytes(to):,} bytes instead of {self.size:,}", path=self.shown,
                remedy="The file may have changed meanwhile: try again.",
            )  # fmt: skip

    def _size_text(self) -> str:
        return "an unknown number of" if self.size is None else f"{self.size:,}"


class _BrokenError(Exception):
    """Error of a connection that broke."""


class _SilenceError(Exception):
    """Error of a server that sends nothing."""


def remote_files(address: str) -> list[RemoteFile]:
    """Find the files of an address, of which there are several if its path has a ``*``.

    Raises
    ------
    DataError
        If there is no such file, or the server cannot be asked.
    """
    shown = without_secrets(address)
    system, path = _file_system(address, shown)
    system.invalidate_cache()  # Stores keep lists of files, which may be old.
    if "*" not in path:
        return [_found(system, path, shown)]
    paths = sorted(_asked(lambda: system.glob(path), shown))
    if not paths:
        raise DataError("no file has such a name", path=shown, remedy="Check the pattern.")
    return [_found(system, each, without_secrets(system.unstrip_protocol(each))) for each in paths]


def is_folder(address: str) -> bool:
    """Return whether an address is that of a folder, as far as one can know.

    Stores tell. A web server knows no folders: an address is one if it ends in a slash, or if its last part has no dot.
    """
    place, _ = split_address(address)
    if address.partition("://")[0].lower() in _WEB:
        path = _web_path(address)
        return "*" not in path and (path.endswith("/") or "." not in path.rpartition("/")[2])
    shown = without_secrets(address)
    system, path = _file_system(place, shown)
    return "*" not in path and _asked(lambda: bool(system.isdir(path)), shown)


def _web_path(address: str) -> str:
    try:
        return urlsplit(address).path
    except ValueError as error:
        what, shown = f"the address is not understood ({error})", without_secrets(address)
        raise DataError(what, path=shown, remedy="Check it.") from None


def split_address(address: str) -> tuple[str, str]:
    """Return an address without slashes at its end, and the query of an address on the web.

    >>> split_address("https://example.org/packed/?key=1"), split_address("s3://bucket/packed/")
    (('https://example.org/packed', '?key=1'), ('s3://bucket/packed', ''))
    """
    if address.partition("://")[0].lower() not in _WEB:
        return address.rstrip("/"), ""
    place, mark, query = address.partition("#")[0].partition("?")
    return place.rstrip("/"), mark + query


def _found(system: Any, path: str, shown: str) -> RemoteFile:
    info = _asked(lambda: system.info(path), shown)
    if info.get("type") == "directory":
        raise DataError("this is a folder", path=shown, remedy="Name the files in it.")
    size = info.get("size")
    version = "; ".join(f"{key}={info[key]}" for key in _VERSION_KEYS if info.get(key))
    return RemoteFile(system, path, shown, None if size is None else int(size), version)


def _file_system(address: str, shown: str) -> tuple[Any, str]:
    scheme = address.partition("://")[0].lower()
    try:
        import fsspec
    except ModuleNotFoundError:
        raise MissingExtraError(f"Reading {scheme}:// addresses", "fsspec", "remote") from None
    try:
        return fsspec.core.url_to_fs(address, **(_web_options() if scheme in _WEB else {}))  # type: ignore[no-any-return]
    except ImportError as error:
        package = _PACKAGES.get(scheme)
        if scheme in _WEB:
            raise MissingExtraError(f"Reading {scheme}:// addresses", "aiohttp", "remote") from None
        remedy = f"Install it with: pip install {package}" if package else f"{error}."
        what = f"{scheme}:// needs the package '{package}'" if package else f"{scheme}:// needs another package"
        raise DataError(what, path=shown, remedy=remedy) from None
    except ValueError as error:
        raise DataError(f"the address is not understood ({error})", path=shown, remedy="Check it.") from None
    except Exception as error:  # Backends look for credentials here.
        raise _failure(error, shown) from None


def _web_options() -> dict[str, Any]:
    import aiohttp

    limits = aiohttp.ClientTimeout(total=None, sock_connect=SILENCE_SECONDS, sock_read=SILENCE_SECONDS)
    # A file is stored as it is on the server, and not unpacked on its way.
    client = {"timeout": limits, "trust_env": True, "auto_decompress": False}
    return {"client_kwargs": client, "headers": {"Accept-Encoding": "identity"}}


def _asked(question: Callable[[], Made], shown: str) -> Made:
    try:
        return _within_limit(question, shown)
    except (_BrokenError, _SilenceError) as error:
        raise DataError(str(error), path=shown, remedy="Check the address and the network.") from None


def _within_limit(work: Callable[[], Made], shown: str, to: Path | None = None, size: int | None = None) -> Made:
    """Return the result of ``work``, unless nothing happens for too long: neither an end nor growth of a file.

    The work is done by a thread, because not every backend has limits of its own. The thread of a silent server is left
    behind, and the end of the program does not wait for it.
    """
    result: list[Made] = []
    errors: list[BaseException] = []
    ended = threading.Event()

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    threading.Thread(target=run, name="hogwild-fetches", daemon=True).start()
    progress, done, last = _progress.get(), 0, time.monotonic()
    while not ended.wait(_POLL_SECONDS):
        if to is not None and (now := _bytes(to)) != done:
            done, last = now, time.monotonic()
            if progress is not None:
                progress(shown, done, size)
        if time.monotonic() - last > SILENCE_SECONDS * (1.5 if to is not None else 3):  # clients try several times
            raise _SilenceError(f"the server has sent nothing for {SILENCE_SECONDS:g} seconds")
    if errors:
        raise _failure(errors[0], shown) from None
    return result[0]


def _bytes(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _failure(error: BaseException, shown: str) -> Exception:
    """Return the error that tells a user what has happened: some of them are worth another attempt."""
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None and len(chain) < 10:
        chain.append(cause)
    names = {kind.__name__ for each in chain for kind in type(each).__mro__}
    statuses = [each.status for each in chain if hasattr(each, "status") and isinstance(each.status, int)]
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        return _BrokenError("the connection broke")
    if (statuses and statuses[0] in (401, 403)) or "PermissionError" in names or "NoCredentialsError" in names:
        status = f" (HTTP status {statuses[0]})" if statuses else f" ({_words(error)})"
        return DataError(f"the file may not be read{status}", path=shown, remedy="Check the address and credentials.")
    if statuses and statuses[0] not in (0, 404):
        return DataError(f"the server answers with the HTTP status {statuses[0]}", path=shown, remedy="Check it.")
    if names & {"ClientConnectorError", "gaierror", "ConnectionRefusedError", "EndpointConnectionError"}:
        why = _words(next((each for each in chain if type(each).__name__ == "ClientConnectorError"), chain[-1]))
        return DataError(f"the server cannot be reached ({why})", path=shown, remedy="Check the address.")
    if names & {"TimeoutError", "FSTimeoutError", "ReadTimeoutError"}:
        return _SilenceError(f"the server has sent nothing for {SILENCE_SECONDS:g} seconds")
    if names & {"ClientPayloadError", "ServerDisconnectedError", "ConnectionError", "IncompleteReadError"}:
        return _BrokenError("the connection broke")
    if "FileNotFoundError" in names:
        return DataError("there is no such file on the server", path=shown, remedy="Check the address.")
    if isinstance(error, OSError) and error.errno is not None:
        return error  # such as a full disk
    return DataError(f"the file cannot be fetched ({_words(error)})", path=shown, remedy="Check the address.")


def _words(error: BaseException) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    return text[:200] or type(error).__name__
