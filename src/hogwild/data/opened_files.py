"""Files that are ready to be read: local copies of what was named, and the reader of their format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hogwild.data.format_detection import reader_for
from hogwild.data.packing.sharded_rows import is_packed
from hogwild.data.reader import Reader, ReadOptions
from hogwild.data.sources import FileSource, errors_named, local_files
from hogwild.data.streams import Stream, is_stream
from hogwild.errors import DataError, ParameterError


@dataclass(frozen=True, slots=True)
class OpenedFiles:
    """Local files of one format, and their reader."""

    paths: list[Path]
    reader: Reader
    name: str  # Name of the data, for messages.


@contextmanager
def opened_files(
    sources: Sequence[FileSource], reading: ReadOptions, readers: Sequence[Reader] | None = None, *, twice: bool = False
) -> Iterator[OpenedFiles]:
    """Yield the files of sources, which may be addresses or one stream, for the time of the block.

    A stream is read through a pipe if its reader opens a file once, else from a temporary file. Files that are read
    ``twice`` are never pipes.
    """
    if len(sources) == 1 and is_stream(sources[0]):
        with Stream(sources[0]) as stream:
            reader = reader_for(
                stream.path, reading.format, all_readers() if readers is None else readers, stream.first
            )
            check_columns(reader, reading, stream.name)
            once = reader.streams and not twice
            with stream.piped() if once else stream.spooled() as path, errors_named({str(path): stream.name}):
                yield OpenedFiles([path], reader, stream.path.name)
        return
    with local_files(sources) as files:
        reader = single_reader(files, reading, readers)
        check_columns(reader, reading, str(sources[0]))
        yield OpenedFiles(files, reader, ", ".join(path.name for path in files))


def check_columns(reader: Reader, reading: ReadOptions, name: str) -> None:
    """Raise ``ParameterError`` if options are for columns of tables, and the file is none."""
    if reader.tabular:
        return
    if reading.label is not None:
        raise ParameterError(
            f"The label {reading.label!r} names a column of a table, and '{name}' is a {reader.name} file, "
            "which says itself what its labels are: leave out the name."
        )
    if reading.weight is not None:
        raise ParameterError(
            f"The weight {reading.weight!r} names a column of a table, and '{name}' is a {reader.name} file, "
            "whose columns have no names: leave it out."
        )
    if reading.roles is not None or reading.header is not None or reading.fields:
        raise ParameterError(
            f"The options numeric, categorical, text, drop, fields and header are for columns of tables, and '{name}' "
            f"is a {reader.name} file: leave them out."
        )


def single_reader(paths: Sequence[Path], reading: ReadOptions, readers: Sequence[Reader] | None = None) -> Reader:
    """Return the reader of all these files; raise ``DataError`` unless they have one format."""
    if not paths:
        raise ParameterError("At least one file must be given.")
    known = all_readers() if readers is None else readers
    chosen = [reader_for(_file(path), reading.format, known) for path in paths]
    for path, reader in zip(paths, chosen, strict=True):
        if reader is not chosen[0]:
            what = f"this is a {reader.name} file, and '{paths[0]}' is a {chosen[0].name} file"
            raise DataError(what, path=path, remedy="Give files of one format.")
    if reading.encoding is not None and not chosen[0].fits:
        what = f"this is a {chosen[0].name} file, and the training data was a table of columns with names"
        raise DataError(what, path=paths[0], remedy="Give a table with the same columns.")
    return chosen[0]


def all_readers() -> Sequence[Reader]:
    """Return the readers of all formats."""
    from hogwild.data.readers import READERS  # This import loads every format, so it happens only when a file is read.

    return READERS


def _file(path: Path) -> Path:
    if path.is_dir():
        what = "this is a packed folder already" if is_packed(path) else "this is a folder"
        raise DataError(what, path=path, remedy="Name the files to read.")
    return path
