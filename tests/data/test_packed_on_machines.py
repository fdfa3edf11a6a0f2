"""Packing on several machines, here folders and packers in one process: shards lie where they were written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from packed_contents import contents, svmlight_lines

from hogwild.data import ReadOptions
from hogwild.data import open as open_data
from hogwild.data.packing import file_parts, machine_packer
from hogwild.data.packing.machine_packer import FoundFile, MachinePacker
from hogwild.data.packing.on_machines import Duties, pack_on_machines
from hogwild.data.packing.pack import pack
from hogwild.data.packing.sharded_rows import shard_name
from hogwild.data.packing.stages import PackOptions
from hogwild.data.packing.writer import Origin
from hogwild.errors import DataError, ParameterError

SEED = 3


class Rooms:
    """Machines whose disks are folders, each with some of the files."""

    def __init__(self, dests: list[Path], has: list[set[str]]) -> None:
        self.names = [f"room {number}" for number in range(len(dests))]
        self.packers = [MachinePacker(number, dest, 1) for number, dest in enumerate(dests)]
        self.has, self.fetched = has, list[int]()

    def call(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        results = {number: getattr(self.packers[number], method)(*given) for number, given in arguments.items()}
        if method == "look":
            results = {number: self._of(number, found) for number, found in results.items()}
        return results

    refer = call

    def fetch(self, folders: Mapping[Path, int]) -> Any:
        def read(folder: Path, paths: list[Path], first: int, size: int) -> bytes:
            data = self.packers[folders[folder]].chunk(paths, first, size)
            self.fetched.append(len(data))
            return data

        return SimpleNamespace(read=read, sizes=lambda folder, paths: self.packers[folders[folder]].sizes(paths))

    def _of(self, number: int, found: list[list[FoundFile]]) -> list[list[FoundFile]]:
        return [[file for file in some if file.size.path.name in self.has[number]] for some in found]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(file_parts, "LEAST_BYTES", 100)
    monkeypatch.setattr(machine_packer, "CHUNK", 100)
    for number, name in enumerate(("day_1.svm", "day_2.svm", "day_3.svm")):
        (tmp_path / name).write_text("\n".join(svmlight_lines(300 * number, 300)))
    return [str(tmp_path / "day_*.svm")]


def packed(rooms: Rooms, files: list[str], shards: int, **more: Any) -> list[Any]:
    options = PackOptions(ReadOptions(), None, Origin(2**30, SEED, []))
    duties = Duties(more.pop("home", 0), more.pop("working", [*range(len(rooms.names))]), shards)
    return pack_on_machines(rooms, duties, files, options, 1, more.pop("overwrite", False), lambda *_: None)


def expected(tmp_path: Path, shards: int) -> dict[str, Any]:
    pack(sorted(tmp_path.glob("day_*.svm")), tmp_path / "expected", seed=SEED, shards=shards)
    return contents(tmp_path / "expected")


def test_each_machine_has_the_shards_that_one_process_would_have_written(tmp_path: Path, files: list[str]) -> None:
    dests = [tmp_path / name / "clicks.packed" for name in ("a", "b")]
    rooms = Rooms(dests, [{"day_1.svm", "day_3.svm"}, {"day_2.svm", "day_3.svm"}])
    packed(rooms, files, 4)
    whole = expected(tmp_path, 4)
    for dest, shards in zip(dests, ((0, 1), (2, 3)), strict=True):
        mine = {name: one for name, one in whole.items() if "/" not in name or int(name[6:10]) in shards}
        assert contents(dest) == mine
        assert [path.name for path in dest.parent.iterdir()] == ["clicks.packed"]
    assert {100} < set(rooms.fetched)  # whole chunks, and shorter ones at the ends of files
    data = open_data(dests[1])
    assert data.shard(3, 4).labels().tolist() == open_data(tmp_path / "expected").shard(3, 4).labels().tolist()


def test_machines_that_see_the_same_disk_fill_one_folder(tmp_path: Path, files: list[str]) -> None:
    shared, other = tmp_path / "shared" / "out", tmp_path / "other" / "out"
    rooms = Rooms([shared, other, shared], [set(), {"day_2.svm"}, {"day_1.svm", "day_3.svm"}])
    packed(rooms, files, 6)
    assert [number for number in range(6) if (shared / shard_name(number)).exists()] == [0, 1, 4, 5]
    assert [number for number in range(6) if (other / shard_name(number)).exists()] == [2, 3]
    both = contents(shared) | contents(other)
    assert both == expected(tmp_path, 6)


def test_one_shard_is_a_folder_on_the_machine_of_the_program(tmp_path: Path, files: list[str]) -> None:
    dests = [tmp_path / name / "out" for name in ("a", "b")]
    packed(Rooms(dests, [{"day_1.svm", "day_2.svm", "day_3.svm"}, set()]), files, 1, home=1)
    assert contents(dests[1]) == expected(tmp_path, 1)
    assert not list(dests[0].parent.iterdir())


def test_a_machine_without_cores_reads_only_what_it_alone_has(tmp_path: Path, files: list[str]) -> None:
    dests = [tmp_path / name / "out" for name in ("a", "b")]
    packed(Rooms(dests, [{"day_1.svm", "day_2.svm"}, {"day_2.svm", "day_3.svm"}]), files, 2, working=[1])
    whole = expected(tmp_path, 2)
    assert contents(dests[1]) == whole
    # The machine of the program gets a copy of a shard.
    assert contents(dests[0]) == {name: one for name, one in whole.items() if not name.startswith(shard_name(1))}


def test_what_cannot_be_packed_is_told_and_leaves_nothing(tmp_path: Path, files: list[str]) -> None:
    dests = [tmp_path / name / "out" for name in ("a", "b")]
    everything = [{"day_1.svm", "day_2.svm", "day_3.svm", "bad.svm", "b.vw"}] * 2

    def left() -> list[Path]:
        return [path for dest in dests for path in dest.parent.glob("*")]

    with pytest.raises(DataError, match=r"no machine has such a file \(room 0, room 1\)"):
        packed(Rooms(dests, everything), [str(tmp_path / "none.svm")], 2)
    (tmp_path / "b.vw").write_text("1 |a b\n")
    with pytest.raises(DataError, match=r"b\.vw: this is a vw file, and .*day_1\.svm' is a svmlight file"):
        packed(Rooms(dests, everything), [*files, str(tmp_path / "b.vw")], 2)
    (tmp_path / "bad.svm").write_text("1 1:1\n1 x\n")
    with pytest.raises(DataError, match=r"bad\.svm, line 2"):
        packed(Rooms(dests, everything), [*files, str(tmp_path / "bad.svm")], 2)
    with pytest.raises(ParameterError, match="no more than 900 shards"):
        packed(Rooms(dests, everything), files, 901)
    assert left() == []
    packed(Rooms(dests, everything), files, 2)
    with pytest.raises(ParameterError, match="exists already"):
        packed(Rooms(dests, everything), files, 2)
    packed(Rooms(dests, everything), files, 3, overwrite=True)
    assert [path.name for path in left()] == ["out", "out"]


def test_files_of_one_name_that_differ_are_refused(tmp_path: Path, files: list[str]) -> None:
    class Different(Rooms):
        def _of(self, number: int, found: list[list[FoundFile]]) -> list[list[FoundFile]]:
            if number == 1:
                (tmp_path / "day_1.svm").write_text("1 1:1\n")
                return self.packers[1].look(files, ReadOptions())
            return found

    dests = [tmp_path / name / "out" for name in ("a", "b")]
    with pytest.raises(DataError, match=r"day_1\.svm: this is another file on the machine 'room 1' than on 'room 0'"):
        packed(Different(dests, [set(), set()]), files, 2)
