"""Remote files: web servers on loopback and fsspec's memory, their cache, and servers that fail."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry

import hogwild
from hogwild.cli import main
from hogwild.data import download_cache, remote
from hogwild.data.ratings import open_ratings
from hogwild.errors import DataError, MissingExtraError, ParameterError

ROWS = b"".join(b"%d %d:0.5 %d:1\n" % (i % 2, 1 + i % 7, 8 + i % 3) for i in range(400))


class Server:
    """Web server with files, which counts what it is asked for, and can misbehave."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {"/a.svm": ROWS}
        self.asked: list[tuple[str, str]] = []  # (method, path)
        self.tag = "one"
        self.status = 200
        self.misbehave: Callable[[BaseHTTPRequestHandler, bytes], None] | None = None
        self.released = threading.Event()
        self.began = threading.Event()  # a file is being sent
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                server.asked.append((self.command, self.path))
                content = server.files.get(self.path.partition("?")[0])
                status = 404 if content is None else server.status
                self.send_response(status)
                self.send_header("Content-Length", str(len(content or b"")))
                self.send_header("ETag", server.tag)
                self.end_headers()
                if self.command == "GET" and status == 200 and content is not None:
                    server.began.set()
                    if server.misbehave is None:
                        self.wfile.write(content)
                    else:
                        server.misbehave(self, content)

            do_GET = do_HEAD  # noqa: N815

            def log_message(self, *_: object) -> None: ...

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.handle_error = lambda *_: None  # type: ignore[method-assign]  # connections break on purpose
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()

    def gets(self) -> int:
        return sum(method == "GET" for method, _ in self.asked)

    def close(self) -> None:
        self.released.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("HOGWILD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "*")
    made = Server()
    yield made
    made.close()


def refused(source: str) -> str:
    with pytest.raises(DataError) as caught:
        hogwild.data.open(source)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_file_is_fetched_once(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_bytes(ROWS)
    near, far = hogwild.data.open(tmp_path / "a.svm"), hogwild.data.open(f"{server.url}/a.svm")
    assert far.fingerprint == near.fingerprint
    assert far.name == "a.svm"
    assert server.gets() == 1
    hogwild.Linear(f"{server.url}/a.svm")
    assert server.gets() == 1
    server.files["/a.svm"], server.tag = ROWS + b"1 3:1\n", "two"
    assert hogwild.data.open(f"{server.url}/a.svm").n_rows == 401
    assert server.gets() == 2


def test_a_change_that_keeps_the_size_is_seen(server: Server) -> None:
    before = hogwild.data.open(f"{server.url}/a.svm").fingerprint
    server.files["/a.svm"], server.tag = ROWS.replace(b"0.5", b"0.7"), "two"
    assert hogwild.data.open(f"{server.url}/a.svm").fingerprint != before


def test_a_copy_that_was_cut_is_not_used(server: Server, tmp_path: Path) -> None:
    hogwild.data.open(f"{server.url}/a.svm")
    (copy,) = (tmp_path / "cache").rglob("a.svm")
    copy.write_bytes(ROWS[:50])
    assert hogwild.data.open(f"{server.url}/a.svm").n_rows == 400
    assert server.gets() == 2


def test_all_commands(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, model = f"{server.url}/a.svm", str(tmp_path / "model")
    common = ["--strategy", "serial", "--epochs", "1", "--step", "0.1"]
    assert main(["train", url, "--test", url, "--out", model, "--save-config", f"{model}.toml", *common]) == 0
    assert f'data = "{url}"' in Path(f"{model}.toml").read_text()
    capsys.readouterr()
    assert main(["predict", model, url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 400
    assert main(["inspect", url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["source"] == "a.svm"
    assert main(["pack", url, str(tmp_path / "packed")]) == 0
    assert hogwild.data.open(tmp_path / "packed").n_rows == 400
    assert server.gets() == 1


def test_errors_name_the_address_without_its_secrets(server: Server) -> None:
    server.files["/bad.svm"] = b"1 1:1\nx 1:1\n"
    message = refused(f"{server.url}/bad.svm?signature=secret")
    assert message.startswith(f"{server.url}/bad.svm, line 2, column 1: ")
    assert "secret" not in message
    assert not [path for path in Path(os.environ["HOGWILD_CACHE"]).rglob("*") if "secret" in path.name]


def test_no_such_file_host_or_right(server: Server) -> None:
    assert "no such file on the server" in refused(f"{server.url}/other.svm")
    server.status = 403
    assert "may not be read (HTTP status 403)" in refused(f"{server.url}/a.svm")
    server.status = 500
    assert "HTTP status 500" in refused(f"{server.url}/a.svm")
    server.close()
    assert "cannot be reached" in refused(f"{server.url}/a.svm")
    assert "cannot be reached" in refused("https://no-such-host.invalid/a.svm")


def test_a_connection_that_is_cut(server: Server, tmp_path: Path) -> None:
    def cut(request: BaseHTTPRequestHandler, content: bytes) -> None:
        request.wfile.write(content[:1000])
        request.close_connection = True

    server.misbehave = cut
    assert f"the connection broke (after 1000 of {len(ROWS):,} bytes, 3 times)" in refused(f"{server.url}/a.svm")
    assert server.gets() == 3
    assert not list((tmp_path / "cache").rglob("*a.svm*"))  # neither a part nor what is taken for the whole
    server.misbehave = None
    assert hogwild.data.open(f"{server.url}/a.svm").n_rows == 400


def test_a_connection_that_is_cut_once(server: Server) -> None:
    def cut_once(request: BaseHTTPRequestHandler, content: bytes) -> None:
        server.misbehave = None
        request.wfile.write(content[:1000])
        request.close_connection = True

    server.misbehave = cut_once
    assert hogwild.data.open(f"{server.url}/a.svm").n_rows == 400


def test_a_server_that_stalls(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "SILENCE_SECONDS", 0.2)
    monkeypatch.setattr(remote, "ATTEMPTS", 1)

    def stall(request: BaseHTTPRequestHandler, content: bytes) -> None:
        request.wfile.write(content[:1000])
        server.released.wait()

    server.misbehave = stall
    assert "sent nothing for 0.2 seconds" in refused(f"{server.url}/a.svm")


def test_a_file_of_another_length_than_announced(server: Server) -> None:
    fetched = remote.remote_files(f"{server.url}/a.svm")[0]
    server.files["/a.svm"] = ROWS[:-6]
    with pytest.raises(DataError, match=f"has sent {len(ROWS) - 6:,} bytes instead of {len(ROWS):,}"):
        download_cache.cached(fetched)


def test_two_at_a_time_fetch_a_file_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server waits in the middle of the file until the second has asked about it: locks hold between threads."""

    def hold(request: BaseHTTPRequestHandler, content: bytes) -> None:
        request.wfile.write(content[:1000])
        request.wfile.flush()
        server.released.wait(60)
        request.wfile.write(content[1000:])

    server.misbehave = hold
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(hogwild.data.open, f"{server.url}/a.svm")
        assert server.began.wait(60)
        waits, waiting = download_cache.time.sleep, threading.Event()
        monkeypatch.setattr(download_cache.time, "sleep", lambda seconds: (waiting.set(), waits(seconds)))
        second = pool.submit(hogwild.data.open, f"{server.url}/a.svm")
        assert waiting.wait(60)
        server.released.set()
        assert first.result(60).n_rows == second.result(60).n_rows == 400
    assert server.gets() == 1


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[fsspec.AbstractFileSystem]:
    monkeypatch.setenv("HOGWILD_CACHE", str(tmp_path / "cache"))
    system = fsspec.filesystem("memory")
    system.pipe({"/data/a.svm": ROWS[: len(ROWS) // 2], "/data/b.svm": ROWS[len(ROWS) // 2 :]})
    yield system
    system.rm("/data", recursive=True)


def test_stores_and_patterns(memory: fsspec.AbstractFileSystem, tmp_path: Path) -> None:
    assert hogwild.data.open("memory://data/a.svm").n_rows == 200
    assert hogwild.data.open("memory://data/*.svm").n_rows == 400
    assert hogwild.data.open(["memory://data/a.svm", "memory://data/b.svm"]).n_rows == 400
    packed = hogwild.data.pack(["memory://data/*.svm"], tmp_path / "packed")
    assert packed.n_rows == 400
    assert "no file has such a name" in refused("memory://data/*.vw")
    assert "this is a folder" in refused("memory://data")
    memory.pipe("/data/r.csv", b"user,item,rating\nann,7,5\n")
    ratings = open_ratings("memory://data/r.csv")
    assert ratings.n_users == 1


@pytest.mark.parametrize("shards", [1, 3])
def test_packed_folders_in_a_store(shards: int, memory: fsspec.AbstractFileSystem, tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_bytes(ROWS)
    hogwild.data.pack([tmp_path / "a.svm"], tmp_path / "packed", shards=shards)
    memory.put(str(tmp_path / "packed"), "/data/packed", recursive=True)
    here, there = hogwild.data.open(tmp_path / "packed"), hogwild.data.open("memory://data/packed/")
    assert (there.n_rows, there.fingerprint) == (400, here.fingerprint)
    assert (there.labels() == here.labels()).all()
    model = tmp_path / "model"
    assert main(["train", "memory://data/packed", "--epochs", "1", "--out", str(model)]) == 0
    assert main(["predict", str(model), "memory://data/packed", "--out", str(tmp_path / "scores.txt")]) == 0
    assert len((tmp_path / "scores.txt").read_text().splitlines()) == 400


def test_a_packed_folder_that_changes_in_its_store(memory: fsspec.AbstractFileSystem, tmp_path: Path) -> None:
    for rows, name in ((200, "one"), (100, "two")):
        (tmp_path / "a.svm").write_bytes(b"\n".join(ROWS.splitlines()[:rows]))
        hogwild.data.pack([tmp_path / "a.svm"], tmp_path / name)
        memory.put(str(tmp_path / name / "*"), "/data/packed/")
        assert hogwild.data.open("memory://data/packed").n_rows == rows
    memory.rm("/data/packed/values.f32")
    assert "values.f32: there is no such file on the server" in refused("memory://data/packed")


def test_a_packed_folder_on_a_web_server(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_bytes(ROWS)
    hogwild.data.pack([tmp_path / "a.svm"], tmp_path / "packed")
    server.files |= {f"/data/{each.name}": each.read_bytes() for each in (tmp_path / "packed").iterdir()}
    assert hogwild.data.open(f"{server.url}/data/?key=secret").n_rows == 400
    gets = server.gets()
    assert hogwild.data.open(f"{server.url}/data").n_rows == 400
    assert server.gets() == 2 * gets  # Another address, whose answers may be others.
    assert hogwild.data.open(f"{server.url}/data").n_rows == 400
    assert server.gets() == 2 * gets
    assert "neither meta.json nor shards.json" in refused(f"{server.url}/nothing/")


@pytest.mark.parametrize("scheme", ["gs", "hf", "s3"])
def test_stores_by_their_names(
    scheme: str, memory: fsspec.AbstractFileSystem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The memory of fsspec in the place of a store: what is tried is our part of it."""

    class Store(MemoryFileSystem):
        protocol = scheme

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return "/" + path.removeprefix(f"{scheme}://").strip("/")

    monkeypatch.setitem(_registry, scheme, Store)
    assert hogwild.data.open(f"{scheme}://data/a.svm").n_rows == 200
    assert hogwild.data.open(f"{scheme}://data/*.svm").n_rows == 400
    (tmp_path / "a.svm").write_bytes(ROWS)
    hogwild.data.pack([tmp_path / "a.svm"], tmp_path / "packed")
    memory.put(str(tmp_path / "packed"), "/data/packed", recursive=True)
    assert hogwild.data.open(f"{scheme}://data/packed").n_rows == 400


class Listed(MemoryFileSystem):
    """A store that answers from an old list of its files until that is forgotten, as those of object stores do."""

    protocol = "listed"
    sizes: ClassVar[dict[str, int]] = {}

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + path.removeprefix("listed://").lstrip("/")

    def info(self, path: str, **options: object) -> dict[str, object]:
        found = super().info(path)
        return {**found, "size": self.sizes.setdefault(path, found["size"]), "created": None}

    def invalidate_cache(self, path: str | None = None) -> None:
        self.sizes.clear()


def test_a_store_with_lists_of_files(memory: fsspec.AbstractFileSystem) -> None:
    fsspec.register_implementation("listed", Listed, clobber=True)
    assert hogwild.data.open("listed://data/a.svm").n_rows == 200
    memory.pipe("/data/a.svm", ROWS)
    assert hogwild.data.open("listed://data/a.svm").n_rows == 400


def test_what_a_backend_logs_is_not_shown(server: Server) -> None:
    """Python prints what no handler takes, and a command has one for that while it fetches."""
    handlers: list[type[logging.Handler]] = []
    server.misbehave = lambda request, content: handlers.extend(type(each) for each in logging.getLogger().handlers)
    assert main(["inspect", f"{server.url}/a.svm"]) == 1
    assert logging.NullHandler in handlers
    assert logging.NullHandler not in {type(each) for each in logging.getLogger().handlers}


def test_an_address_of_a_local_file(tmp_path: Path) -> None:
    (tmp_path / "a b.svm").write_bytes(ROWS)
    assert hogwild.data.open(f"file://{tmp_path}/a%20b.svm").n_rows == 400


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for scheme, package in (("s3", "s3fs"), ("gs", "gcsfs"), ("hf", "huggingface_hub")):
        monkeypatch.setitem(sys.modules, package, None)
        for name in ("a.svm", "packed"):
            message = refused(f"{scheme}://bucket/{name}")
            assert message.startswith(f"{scheme}://bucket/{name}: {scheme}:// needs the package '{package}'.")
            assert message.endswith(f"pip install {package}")
    assert "is not understood" in refused("nothing://bucket/a.svm")
    for address in ("http://[::1/", "http://[::1/a.svm"):
        assert refused(address) == f"{address}: the address is not understood (Invalid IPv6 URL). Check it."
    with pytest.raises(ParameterError, match="is not understood"):
        hogwild.data.open("file://[::1/a.svm")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtraError, match=r"hogwild\[remote\]"):
        hogwild.data.open("s3://bucket/a.svm")


def test_a_full_disk_and_no_folder(
    memory: fsspec.AbstractFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = download_cache.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(download_cache.shutil, "disk_usage", lambda _: usage._replace(free=100))
    assert "does not fit into" in refused("memory://data/a.svm")
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOGWILD_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(hogwild.errors.ParameterError, match="Set HOGWILD_CACHE"):
        hogwild.data.open("memory://data/a.svm")


def test_progress_is_told(memory: fsspec.AbstractFileSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, int, int | None]] = []
    (found,) = remote.remote_files("memory://data/a.svm")
    waiting = threading.Event()

    class Slow:
        """A store that goes on when the first bytes were told."""

        def get_file(self, path: str, to: str) -> None:
            with Path(to).open("wb") as file:
                file.write(ROWS[:1000])
                file.flush()
                assert waiting.wait(60)
                file.write(ROWS[1000 : len(ROWS) // 2])

        def unstrip_protocol(self, path: str) -> str:
            return "slow://" + path

    def tell(*what: object) -> None:
        told.append(what)  # type: ignore[arg-type]
        waiting.set()

    slow = remote.RemoteFile(Slow(), found.path, found.shown, found.size, found.version)
    with remote.showing_downloads(tell):
        download_cache.cached(slow)
    assert told[0] == ("memory://data/a.svm", 1000, len(ROWS) // 2)
