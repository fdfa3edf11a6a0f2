"""Optional dependencies: the installed ones, and whether they work."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

Status = Literal["works", "broken", "not installed"]
IMPORT_SECONDS = 60  # timeout in seconds for the import of one extra

_CUDA = """
from numba import cuda
try:
    names = [gpu.name.decode() if isinstance(gpu.name, bytes) else gpu.name for gpu in cuda.gpus]
except Exception as error:
    names = []
print("device: " + ", ".join(names) if names else "no CUDA device")
"""
_TORCH = "import torch; print('CUDA device' if torch.cuda.is_available() else 'no CUDA device')"


@dataclass(frozen=True, slots=True)
class Extra:
    """Optional dependency: the packages it needs, and a program that uses them."""

    name: str
    what: str
    packages: tuple[str, ...]
    modules: tuple[str, ...]
    program: str = ""

    def source(self) -> str:
        """Return the program that tests the extra. Its first line of output is reported."""
        return f"import {', '.join(self.modules)}\n{self.program}"


EXTRAS = (
    Extra("parquet", "reading Parquet files", ("pyarrow",), ("pyarrow.parquet",)),
    Extra("zstd", "reading files that end in .zst", ("backports.zstd",), ("backports.zstd",)),
    Extra("remote", "reading https://, s3:// and other addresses", ("fsspec", "aiohttp"), ("fsspec", "aiohttp")),
    Extra("tensorboard", "curves in TensorBoard", ("tensorboard",), ("tensorboard.summary.writer.record_writer",)),
    Extra("torch", "training PyTorch modules", ("torch",), ("torch",), _TORCH),
    Extra("ray", "training on a cluster", ("ray",), ("ray",)),
    Extra("cuda", "training on a GPU", ("numba-cuda",), ("numba_cuda",), _CUDA),
    Extra("onnx", "exporting models to ONNX", ("onnx",), ("onnx",)),
    Extra("lab", "experiments and reports", ("plotly", "jinja2", "networkx"), ("plotly", "jinja2", "networkx")),
)


@dataclass(frozen=True, slots=True)
class Found:
    """Result of testing one extra."""

    name: str
    what: str
    status: Status
    said: str  # versions and the output of the program, or the error


def try_extras(extras: tuple[Extra, ...] = EXTRAS) -> list[Found]:
    """Import each installed extra in a separate process, because a broken extra may crash the interpreter.

    >>> [found.status for found in try_extras((Extra("x", "nothing", ("x",), ("no_such_module",)),))]
    ['not installed']
    """
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(_try, extras))


def _try(extra: Extra) -> Found:
    missing = [module for module in extra.modules if importlib.util.find_spec(module.partition(".")[0]) is None]
    if missing:
        return Found(extra.name, extra.what, "not installed", "")
    try:
        ended = subprocess.run(
            [sys.executable, "-c", extra.source()], capture_output=True, text=True, timeout=IMPORT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return Found(extra.name, extra.what, "broken", f"importing it takes more than {IMPORT_SECONDS} seconds")
    if ended.returncode != 0:
        last = (ended.stderr.strip().splitlines() or [f"the interpreter ended with code {ended.returncode}"])[-1]
        return Found(extra.name, extra.what, "broken", last)
    return Found(
        extra.name,
        extra.what,
        "works",
        ", ".join([*map(_version, extra.packages), *ended.stdout.split("\n")[:1]]).rstrip(", "),
    )


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package
