"""Sources of data that are not local files: remote files and streams become local files while they are read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from hogwild.data.remote import is_remote
from hogwild.data.streams import Stream, is_stream
from hogwild.errors import DataError, ParameterError

FileSource = str | os.PathLike[str]  # a path, an address such as ``s3://bucket/file``, or ``-`` for standard input


@contextmanager
def local_files(sources: Sequence[FileSource]) -> Iterator[list[Path]]:
    """Yield the paths of local files that have what the sources have.

    A remote file is fetched into the cache, unless it is there. A stream is written to a private temporary file, which
    is removed at the end of the block. Errors of data within the block name the sources.

    >>> with local_files(["a.svm", Path("b.svm")]) as files:
    ...     [str(file) for file in files]
    ['a.svm', 'b.svm']
    """
    if sum(map(is_stream, sources)) > 1:
        raise ParameterError("One stream can be read at a time: name one pipe, or '-' once.")
    files: list[Path] = []
    names: dict[str, str] = {}
    with ExitStack() as closing:
        for source in sources:
            found = _local(source, closing)
            files += found.values()
            names |= {str(path): name for name, path in found.items() if str(path) != name}
        with errors_named(names):
            yield files


def stored_files(sources: Sequence[FileSource]) -> list[Path]:
    """Return the paths of files that can be read again and again: local ones, and remote ones in the cache."""
    if any(map(is_stream, sources)):
        raise ParameterError("A stream can be read only once, and these files are read in every epoch: save it first.")
    with local_files(sources) as files:
        return files


@contextmanager
def errors_named(names: dict[str, str]) -> Iterator[None]:
    """Replace paths in errors of data by other names.

    >>> with errors_named({"/dev/fd/3": "standard input"}):
    ...     raise DataError("the label is missing", path="/dev/fd/3", line=7)
    Traceback (most recent call last):
        ...
    hogwild.errors.DataError: standard input, line 7: the label is missing.
    """
    try:
        yield
    except DataError as error:
        name = names.get(str(error.path))
        if name is None:
            raise
        raise DataError(
            error.what, path=name, line=error.line, row=error.row, column=error.column, remedy=error.remedy
        ) from None


def local_folder(source: FileSource) -> Path | None:
    """Return the path of a source that is a folder, else None; of a packed folder at an address, its local copy."""
    if is_remote(source):
        from hogwild.data.remote_folders import packed_folder

        return packed_folder(str(source))
    path = local_path(source)
    return path if path.is_dir() else None


def local_path(source: FileSource) -> Path:
    """Return the path of a source on this machine.

    >>> str(local_path("file:///data/a%20b.svm"))
    '/data/a b.svm'
    """
    text = os.fspath(source)
    if not text:
        raise ParameterError("The path of the data is empty. Name a file or a folder.")
    if not text.startswith(("file://", "local://")):
        return Path(text)
    try:
        return Path(unquote(urlsplit(text).path))
    except ValueError as error:
        raise ParameterError(f"The address {text!r} is not understood ({error}). Check it, or give a path.") from None


def _local(source: FileSource, closing: ExitStack) -> dict[str, Path]:
    """Return the local files of a source by the names that users know."""
    if is_remote(source):
        from hogwild.data.download_cache import cached
        from hogwild.data.remote import remote_files

        return {remote.shown: cached(remote) for remote in remote_files(str(source))}
    if is_stream(source):
        stream = closing.enter_context(Stream(source))
        return {stream.name: closing.enter_context(stream.spooled())}
    path = local_path(source)
    return {str(path): path}
