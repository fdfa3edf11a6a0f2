"""Files of GPU kernels: found again, told apart, and never trusted when damaged. The kernels here are stand-ins."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from hogwild.jit import bind, constant
from hogwild.kernels.cuda_kernel_cache import CudaKernelCache

SIGNATURE = ("array(float32, 1d, C)",)


class Codegen:
    """What compiles, and for which kind of GPU."""

    def __init__(self, capability: tuple[int, int] = (9, 0)) -> None:
        self.capability = capability

    def codegen(self) -> Codegen:
        return self

    def magic_tuple(self) -> tuple[Any, ...]:
        return (13, 0), self.capability


class Kernel:
    """A compiled kernel, which is all in its code."""

    def __init__(self, code: str, *, sensitive: bool = False) -> None:
        self.code, self.sensitive, self.codegen = code, sensitive, Codegen()

    def _reduce_states(self) -> dict[str, Any]:
        return {"code": self.code, "launch_config_sensitive": self.sensitive}

    @classmethod
    def _rebuild(cls, code: str, launch_config_sensitive: bool) -> Kernel:
        return cls(code, sensitive=launch_config_sensitive)


@pytest.fixture(autouse=True)
def numba_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in {"dispatcher": {"_Kernel": Kernel}, "serialize": {"dumps": pickle.dumps}}.items():
        module = ModuleType(f"numba.cuda.{name}")
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, module.__name__, module)


def template(rows: Any) -> Any:
    return number() * rows * WIDTH  # type: ignore[name-defined]  # noqa: F821


def cache(folder: Path, number: int = 1, width: Any = 4, **options: Any) -> CudaKernelCache:
    return CudaKernelCache(folder, bind(template, number=constant(number), WIDTH=width), **options)


def found(cache: CudaKernelCache, signature: object = SIGNATURE, target: Codegen | None = None) -> str | None:
    kernel = cache.load_overload(signature, target or Codegen())
    return None if kernel is None else str(kernel.code)


def test_a_kernel_is_found_by_the_next_process(tmp_path: Path) -> None:
    assert found(cache(tmp_path)) is None
    cache(tmp_path).save_overload(SIGNATURE, Kernel("machine code"))
    assert found(cache(tmp_path)) == "machine code"
    cache(tmp_path).flush()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "other",
    [
        lambda folder: found(cache(folder, number=2)),
        lambda folder: found(cache(folder, width=8)),
        lambda folder: found(cache(folder, width=np.float32)),
        lambda folder: found(cache(folder, fastmath=True)),
        lambda folder: found(cache(folder), ("array(float64, 1d, C)",)),
        lambda folder: found(cache(folder), SIGNATURE, Codegen((8, 0))),
    ],
    ids=["a function in it", "a number in it", "a type in it", "options", "types of arguments", "another GPU"],
)
def test_another_kernel_has_another_file(tmp_path: Path, other: Callable[[Path], str | None]) -> None:
    cache(tmp_path).save_overload(SIGNATURE, Kernel("machine code"))
    assert other(tmp_path) is None


def test_damaged_files_are_compiled_anew(tmp_path: Path) -> None:
    cache(tmp_path).save_overload(SIGNATURE, Kernel("machine code"))
    [file] = tmp_path.iterdir()
    whole = file.read_bytes()
    for damaged in (b"", whole[:-1], whole[:40], whole[:-9] + b"x" + whole[-8:], b"\0" * len(whole)):
        file.write_bytes(damaged)
        assert found(cache(tmp_path)) is None
    cache(tmp_path).save_overload(SIGNATURE, Kernel("again"))
    assert found(cache(tmp_path)) == "again"


def test_what_cannot_be_written_is_not_kept(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    cache(gone).save_overload(SIGNATURE, Kernel("machine code"))
    cache(tmp_path).save_overload(SIGNATURE, Kernel("for 32 threads", sensitive=True))
    assert not list(tmp_path.iterdir())
