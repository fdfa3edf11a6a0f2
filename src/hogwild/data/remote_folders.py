"""Packed folders on object stores and web servers: their files are fetched into the cache, and linked into a folder.

A packed folder says itself which files it has, so that a server need not list them.
"""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path

from hogwild.cache_folder import data_cache_folder
from hogwild.data.download_cache import cached
from hogwild.data.packing.format import CHECKSUMS, META, read_meta
from hogwild.data.packing.sharded_rows import FREQUENCIES, SHARDS, ShardList, shard_name
from hogwild.data.remote import is_folder, remote_files, split_address
from hogwild.errors import DataError


def packed_folder(address: str) -> Path | None:
    """Return a local copy of the packed folder at an address, or None if it is no folder.

    Raises
    ------
    DataError
        If the address is a folder that is not a packed one, or that cannot be fetched as a whole.
    """
    if not is_folder(address):
        return None
    place, query = split_address(address)
    digest = hashlib.sha256(address.encode()).hexdigest()[:32]
    name = Path(place).name or "packed"
    folder = data_cache_folder() / "folders" / digest / name
    if not _linked(folder, place, META, query, missing_allowed=True):
        if not _linked(folder, place, SHARDS, query, missing_allowed=True):
            what = f"this is a folder, and has neither {META} nor {SHARDS}"
            raise DataError(what, path=place, remedy="Name the files in it, or a folder made by 'hogwild pack'.")
        _linked(folder, place, FREQUENCIES, query)
        for number in range(len(ShardList.read(folder).rows)):
            shard = shard_name(number)
            _linked(folder / shard, f"{place}/{shard}", META, query)
            _fetch_arrays(folder / shard, f"{place}/{shard}", query)
    else:
        _fetch_arrays(folder, place, query)
    return folder


def _fetch_arrays(folder: Path, place: str, query: str) -> None:
    for array, _ in read_meta(folder).files():
        _linked(folder, place, array.file, query)
    _linked(folder, place, CHECKSUMS, query)


def _linked(folder: Path, place: str, name: str, query: str, *, missing_allowed: bool = False) -> bool:
    """Fetch a file of a folder, unless the cache has it, and link it; return whether there is one."""
    try:
        [remote] = remote_files(f"{place}/{name}{query}")
        path = cached(remote)
    except DataError as error:
        if missing_allowed and "no such file" in error.what:
            (folder / name).unlink(missing_ok=True)
            return False
        raise
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / name
    if not link.is_symlink() or link.readlink() != path:
        beside = folder / f".{name}-{secrets.token_hex(4)}"
        beside.symlink_to(path)
        beside.replace(link)
    return True
