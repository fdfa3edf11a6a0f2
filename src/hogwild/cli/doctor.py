"""``hogwild doctor``: checks of the machine and the installation, with remedies."""

from __future__ import annotations

import os
import shutil
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hogwild.cli.console import Debug, Json, Output
from hogwild.cli.diagnostics import MARKS, Check, grid, heading, is_broken, results, verdict
from hogwild.errors import ParameterError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hogwild.cache_folder import CacheFolder
    from hogwild.cli.diagnostics.optional_dependencies import Found
    from hogwild.machine import Machine

PACKAGES = ("hogwild", "numpy", "scipy", "numba", "llvmlite", "scikit-learn", "threadpoolctl", "psutil", "safetensors")


def doctor(
    address: Annotated[
        str | None,
        typer.Argument(
            metavar="[HOST:PORT]", show_default=False,
            help="The head of the cluster; left out, RAY_ADDRESS, or one on this machine.",
        ),
    ] = None,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Check a Ray cluster instead: nodes, versions, token, TLS.")
    ] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:  # fmt: skip
    """Check the machine and the installation, and report problems with their remedies.

    The checks take several seconds. The exit code is 1 if something essential is broken.

    Example: hogwild doctor --cluster 10.0.0.1:6379
    """
    out = Output(as_json)
    if cluster:
        _report_cluster(address, out)
        return
    if address is not None:
        raise ParameterError(f"{address!r} is for a cluster: add --cluster.")
    with out.progress() as bar:
        task = bar.add_task("Checking the machine", total=None)
        from hogwild.machine import this_machine

        machine = this_machine()
        checks = [*check_versions(), *check_machine(machine)]
        bar.update(task, description="Measuring")
        measured, more = measure(machine)
        bar.update(task, description="Trying the extras")
        from hogwild.cli.diagnostics.optional_dependencies import try_extras

        extras = try_extras()
    checks += [*more, *check_extras(extras)]
    broken = is_broken(checks)
    out.show(*_picture(machine, checks, extras))
    out.result(
        {
            "ok": not broken,
            "machine": machine,
            "usable_cores": machine.usable_cores,
            "versions": {name: _version(name) for name in PACKAGES},
            **measured,
            "extras": {found.name: found for found in extras},
            "checks": checks,
        }
    )
    if broken:
        raise typer.Exit(1)


def _report_cluster(address: str | None, out: Output) -> None:
    from rich.text import Text

    from hogwild.cli.diagnostics.cluster import inspect_cluster, nodes_table

    with out.progress() as bar:
        bar.add_task("Querying the nodes", total=None)
        found, checks = inspect_cluster(address)
    parts = [heading("Nodes"), nodes_table(found), Text()] if found["nodes"] else []
    out.show(*parts, heading("Checks"), results(checks), Text(), verdict(checks))
    out.result({"ok": not is_broken(checks), "cluster": found, "checks": checks})
    if is_broken(checks):
        raise typer.Exit(1)


def check_versions() -> list[Check]:
    """Check that the required packages are installed."""
    missing = [name for name in PACKAGES if _version(name) is None]
    if missing:
        remedy = "Install again: pip install --force-reinstall hogwild"
        return [Check("packages", "error", f"missing: {', '.join(missing)}", remedy)]
    return [Check("packages", "ok", ", ".join(f"{name} {_version(name)}" for name in PACKAGES))]


def check_machine(machine: Machine) -> list[Check]:
    """Check cores, memory, NUMA nodes and vector instructions of the machine."""
    from hogwild.files import format_size

    checks = [_check_cores(machine)]
    if machine.usable_memory < 2**30:
        said = f"only {format_size(machine.usable_memory)} of memory are free"
        checks.append(Check("memory", "warning", said, "Pack large data with 'hogwild pack --memory 512MiB'."))
    if machine.numa_nodes > 1:
        said = f"memory is divided into {machine.numa_nodes} NUMA nodes; crossing between them is slow"
        checks.append(Check("NUMA", "note", said, "Try: numactl --cpunodebind=0 --membind=0 hogwild train ..."))
    if "avx" in machine.vectors and "avx2" not in machine.vectors:
        checks.append(Check("SIMD", "note", "the processor has no AVX2; dense data will be slower"))
    return checks


def _check_cores(machine: Machine) -> Check:
    cores = machine.usable_cores
    if machine.quota is not None and machine.quota < machine.allowed_cores:
        said = f"{machine.allowed_cores} cores, but the control group grants the time of {machine.quota:g}"
        return Check("cores", "warning", said, f"Use --workers {cores}, or raise the limit of the container.")
    if cores == 1:
        remedy = "Workers will take turns: give the process more cores (taskset, docker --cpus)."
        return Check("cores", "warning", "there is one core to use", remedy)
    if machine.allowed_cores < machine.logical_cores:
        said = f"{machine.allowed_cores} of {machine.logical_cores} cores may be used"
        return Check("cores", "note", said, "The others are closed to this process (see taskset, cpuset).")
    return Check("cores", "ok", f"{cores} cores to use")


def measure(machine: Machine) -> tuple[dict[str, Any], list[Check]]:
    """Compile a function, then measure parallelism and memory bandwidth; this takes at most two seconds."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        remedy = "Unset it: without compiled code everything is a hundred times slower."
        return {}, [Check("compiler", "error", "NUMBA_DISABLE_JIT is set", remedy)]
    try:
        from hogwild.cli.diagnostics import microbenchmarks

        compiler = microbenchmarks.check_compiler()
    except Exception as error:  # a broken installation may raise any exception, and its message is reported
        said = f"compiling fails: {type(error).__name__}: {error}".strip().splitlines()[0]
        remedy = "Set NUMBA_CACHE_DIR to a folder that can be written, or reinstall numba and llvmlite."
        return {"compiles": False}, [Check("compiler", "error", said, remedy)]
    if not compiler.works:
        remedy = "Reinstall numba and llvmlite: pip install --force-reinstall numba llvmlite"
        return {"compiles": False}, [Check("compiler", "error", "compiled code computes nonsense", remedy)]
    checks = [Check("compiler", "ok", f"compiles and runs ({compiler.seconds:.2f} s)")]
    checks.append(_check_cache(compiler.cache))
    largest = max((cache.size for cache in machine.caches), default=0)
    size = microbenchmarks.bandwidth_bytes(largest, machine.usable_memory)
    cores = machine.usable_cores
    gain = microbenchmarks.measure_parallelism(2) if cores > 1 else None
    one, every = microbenchmarks.measure_bandwidth(1, size), microbenchmarks.measure_bandwidth(cores, size)
    checks += _check_speed(gain, one, every, cores)
    return {
        "compiles": True,
        "compile_seconds": compiler.seconds,
        "code_cache": compiler.cache.path,
        "two_threads_gain": gain,
        "bandwidth_one_core": one,
        "bandwidth_all_cores": every,
    }, checks


def _check_cache(folder: CacheFolder) -> Check:
    if folder.usual:
        return Check("code cache", "ok", str(folder.path))
    where = str(folder.path.parent) if folder.path else "none: every start compiles again"
    remedy = "Set NUMBA_CACHE_DIR to a folder that only this user can write."
    return Check("code cache", "warning", f"{where} ({', '.join(folder.refused)})", remedy)


def _check_speed(gain: float | None, one: float, every: float, cores: int) -> list[Check]:
    checks = []
    if gain is not None and gain < 1.4:
        said = f"two threads do only {gain:.1f} times the work of one"
        remedy = "Something else uses the cores, or they are two halves of one: stop it, or use fewer workers."
        checks.append(Check("threads", "warning", said, remedy))
    elif gain is not None:
        checks.append(Check("threads", "ok", f"two threads do {gain:.1f} times the work of one"))
    said = f"one core reads {one / 1e9:.1f} GB/s" + (f", {cores} cores {every / 1e9:.1f} GB/s" if cores > 1 else "")
    return [*checks, Check("memory speed", "ok", said)]


def check_extras(extras: list[Found]) -> list[Check]:
    """Check for extras that are broken, and for hardware that an extra could use."""
    checks = []
    for found in extras:
        if found.status == "broken":
            remedy = f"Install it again: pip install --force-reinstall 'hogwild[{found.name}]'"
            checks.append(Check(f"extra {found.name}", "warning", found.said, remedy))
        if found.name == "cuda" and found.status == "not installed" and shutil.which("nvidia-smi"):
            remedy = "To train on it: pip install 'hogwild[cuda]'"
            checks.append(Check("extra cuda", "note", "there is an NVIDIA driver here", remedy))
    return checks


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _picture(machine: Machine, checks: list[Check], extras: list[Found]) -> list[RenderableType]:
    from rich.text import Text

    parts = [
        (Text(*MARKS[{"works": "ok", "broken": "warning"}.get(found.status, "note")]), Text(found.name),
         Text.assemble(found.said or f"not installed ({found.what}): ",
                       ("" if found.said else f"pip install 'hogwild[{found.name}]'", "dim")))
        for found in extras
    ]  # fmt: skip
    return [heading("Machine"), grid(_about(machine)), heading("\nChecks"), results(checks),
            heading("\nExtras"), grid(parts), Text(), verdict(checks)]  # fmt: skip


def _about(machine: Machine) -> list[tuple[RenderableType, ...]]:
    from rich.text import Text

    from hogwild.files import format_size

    physical = f", {machine.physical_cores} physical" if machine.physical_cores else ""
    quota = f", quota {machine.quota:g}" if machine.quota is not None else ""
    caches = ", ".join(
        f"L{cache.level}{cache.kind[0] if cache.level == 1 else ''} {format_size(cache.size)}"
        + (f" (of {cache.shared} cores)" if cache.shared > 1 else "")
        for cache in machine.caches
    )
    limit = f", limit {format_size(machine.memory_limit)}" if machine.memory_limit else ""
    rows = {
        "system": machine.system,
        "processor": machine.processor,
        "cores": f"{machine.logical_cores} logical{physical}, {machine.allowed_cores} allowed{quota}",
        "caches": caches or "unknown",
        "memory": f"{format_size(machine.memory)}, {format_size(machine.available)} free{limit}",
        "SIMD": ", ".join(machine.vectors) or "unknown",
        "NUMA nodes": str(machine.numa_nodes),
    }
    return [(" ", Text(name, "dim"), said) for name, said in rows.items()]
