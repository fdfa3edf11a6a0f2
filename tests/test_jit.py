from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
import types

import numba
import numpy as np
import pytest

from hogwild.jit import Entries, bind, compiled, digest_of, specialise
from hogwild.kernel_cache import EntryCompiler
from hogwild.kernels.argument_record import RecordCompiler, call_with_record, record, record_layout
from hogwild.kernels.atomics import load


def functions(source, **known):
    """A module's worth of functions from text, so that one line can be changed."""
    module = types.ModuleType("made_up")
    module.__dict__.update(known)
    exec(textwrap.dedent(source), module.__dict__)
    return module


BASE = """
    SCALE = 2.0
    LIMITS = (0.0, 9.0)
    TABLE = np.array([1.0, 2.0])

    def inner(x):
        return x * SCALE

    def part(x, shift=1.0):
        return inner(x) + shift + TABLE[0] + LIMITS[1]

    def with_a_function_inside(x):
        return sum([y + 3.0 for y in (x, x)])

    def template(x):
        return part(x)
"""


def digest(source=BASE, template="template", **parts):
    module = functions(source, np=np)
    given = {name: getattr(module, function) for name, function in parts.items()}
    return digest_of(bind(getattr(module, template), **given))


def test_the_same_text_has_the_same_digest():
    assert digest() == digest()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return part(x)", "return part(x) + 1"),  #   the template itself
        ("+ shift", "- shift"),  #                     a function it calls
        ("shift=1.0", "shift=1.5"),  #                 a default
        ("x * SCALE", "x / SCALE"),  #                 a function that one calls
        ("SCALE = 2.0", "SCALE = 3.0"),  #             constants read on the way
        ("LIMITS = (0.0, 9.0)", "LIMITS = (0.0, 8.0)"),
        ("TABLE = np.array([1.0, 2.0])", "TABLE = np.array([1.5, 2.0])"),
        ("return x * SCALE", "return x * 2.5"),  #     a literal instead of a name
    ],
)
def test_the_digest_changes_with_anything_that_is_compiled_in(old, new):
    assert old in BASE
    assert digest(BASE.replace(old, new)) != digest()


def test_the_digest_changes_with_a_part():
    assert digest(part="inner") != digest(part="part")


def test_the_digest_sees_functions_inside_functions():
    changed = BASE.replace("y + 3.0", "y + 4.0")
    assert digest(changed, "with_a_function_inside") != digest(BASE, "with_a_function_inside")


def test_the_digest_of_machine_code_changes_with_its_c_function():
    def add(*given):
        raise NotImplementedError

    class Other(EntryCompiler):
        add_c_function = staticmethod(add)

    assert stamp(Other) != stamp(RecordCompiler) == stamp(RecordCompiler)


def stamp(compiler):
    entries = Entries(weighed, numba.float64, compiler, cache=True)
    return entries._digest(weighed)


def test_the_digest_does_not_change_with_what_is_not_compiled_in():
    assert digest(BASE.replace("y + 3.0", "y + 4.0")) == digest()


def test_the_digest_sees_what_a_function_closes_over():
    def scaled(by):
        return lambda x: x * by

    assert digest_of(scaled(2.0)) == digest_of(scaled(2.0)) != digest_of(scaled(3.0))


def test_parts_take_the_place_of_names_at_any_depth():
    module = functions(BASE, np=np)
    outer = specialise(module.template, cache=False, part=module.inner)
    assert outer(4.0) == 8.0
    assert specialise(module.template, cache=False, part=module.part)(4.0) == 8.0 + 1.0 + 1.0 + 9.0


def test_the_same_parts_are_compiled_once():
    module = functions(BASE, np=np)
    once = specialise(module.template, cache=False, part=module.inner)
    assert specialise(module.template, cache=False, part=module.inner) is once
    assert specialise(module.template, cache=False, part=module.part) is not once


def test_parts_may_close_over_constants_and_functions():
    factor = 3.0

    def helper(x):
        return x + 1.0

    def part(x):
        return factor * helper(x)

    assert specialise(functions(BASE, np=np).template, cache=False, part=part)(1.0) == 6.0


def test_bind_leaves_the_template_as_it_was():
    module = functions(BASE, np=np)
    assert bind(module.template, part=module.inner)(5.0) == 10.0
    assert module.template(5.0) == 21.0


def test_bind_keeps_defaults_and_names():
    def named(x, y=2, *, z=3):
        return x + y + z

    copy = bind(named)
    assert copy(1) == 6
    assert (copy.__name__, copy.__qualname__, copy.__module__) == (named.__name__, named.__qualname__, __name__)


def test_floating_point_is_not_relaxed():
    def is_nan(x):
        return x != x

    def zero_times(x):
        return 0.0 * x

    assert compiled(is_nan)(float("nan"))
    assert np.isnan(compiled(zero_times)(float("inf")))


def test_other_threads_run_while_compiled_code_does():
    def wait(flag):
        while load(flag, 0) == 0:
            pass
        return True

    flag, waiting = np.zeros(2, np.int64), compiled(wait)
    waiting(np.ones(2, np.int64))  # compiles it
    worker = threading.Thread(target=waiting, args=(flag,), daemon=True)
    worker.start()
    flag[0] = 1  # only possible if the worker does not hold Python's lock
    worker.join(timeout=60)
    assert not worker.is_alive()


SCRIPT = """
import json, sys
import numpy as np
from hogwild import Constant, Linear, Serial, minimise
from hogwild.jit import compiled
from hogwild.kernel_cache import KernelCache

KERNELS = ("run_queue", "descend", "score_queue", "add_losses")
counts, original = {"hits": 0, "misses": 0}, KernelCache.load_overload
def counting(cache, *given):
    found = original(cache, *given)
    if any(kernel in cache._cache_file._index_name for kernel in KERNELS):
        counts["misses" if found is None else "hits"] += 1
    return found
KernelCache.load_overload = counting

X = np.random.default_rng(0).standard_normal((50, 3))
run = minimise(Linear((X, np.sign(X[:, 0])), "hinge"), "sgd", Constant(0.1), Serial(), budget=1)
compiler_was_loaded = "numba.np.npyimpl" in sys.modules
new = compiled(lambda x: x @ x)(np.ones(3))
print(json.dumps({**counts, "weights": run.model.weights.tobytes().hex(), "compiler": compiler_was_loaded, "new": new}))
"""


def test_kernels_are_compiled_in_the_first_process_and_read_from_disk_in_the_second(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def once():
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    first, second = once(), once()
    assert (first["hits"], first["misses"]) == (0, 4)  # the queue, the descent, the scores and the losses
    assert (second["hits"], second["misses"]) == (4, 0)
    assert first["weights"] == second["weights"]
    # Numba's compiler takes a third of a second to load.
    assert (first["compiler"], second["compiler"]) == (True, False)
    assert (first["new"], second["new"]) == (3.0, 3.0)


RACING = """
import sys, numba.core.caching as caching, numpy as np
from hogwild.jit import compiled
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"))
how, kind = sys.argv[2:]
if how == "races":  # it looked before the other process had written, and is not the last to write the index
    caching.IndexDataCacheFile._load_index = lambda self: {}
    caching.IndexDataCacheFile._save_index = lambda self, overloads: None
print(function(np.ones(3, kind)))
"""


def test_processes_that_compile_at_the_same_time_do_not_mix_up_their_code(tmp_path):
    source = tmp_path / "source.py"
    source.write_text("@compiled\ndef function(x):\n    return x[0] + x[1] + x[2]\n")

    def run(*what):
        command = [sys.executable, "-c", RACING, str(source), *what]
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert run("alone", "int64") == "3"
    assert run("races", "float64") == "3.0"
    assert len(list(tmp_path.rglob("*.nbc"))) == 2
    assert run("alone", "int64") == "3"


@pytest.mark.parametrize(
    "damage", [b"", b"no pickle", b"cno_such_module\nfunction\n."], ids=["empty", "garbage", "renamed"]
)
def test_code_that_cannot_be_read_is_compiled_again(tmp_path, damage):
    source = tmp_path / "source.py"
    source.write_text("@compiled\ndef function(x):\n    return x[0] + x[1] + x[2]\n")
    command = [sys.executable, "-c", RACING, str(source), "alone", "int64"]

    def run():
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    assert run() == "3"
    for file in tmp_path.rglob("*.nbc"):
        file.write_bytes(damage)
    assert run() == "3"


NAMESAKES = """
import sys, numpy as np
from hogwild.jit import bind, specialise

def inner(x, n):  # too long to be inlined at each of its calls
    total = 0.0
    for k in range(n):
        if x[k] > 0:
            total += term(x[k]) * np.sin(x[k]) + np.exp(-x[k]) * np.cos(x[k])
        else:
            total -= term(x[k]) * np.exp(x[k]) + np.log1p(-x[k])
        j = k
        while j > 0:
            total += term(x[j]) / (1 + j)
            j -= 7
    return total

def outer(x):
    return part(x, x.size) + part(x, 3) * part(x, 7) + part(x, 20)

def one(x):
    return x

def two(x):
    return 100 * x

for term in sys.argv[1:]:
    print(specialise(outer, part=bind(inner, term={"one": one, "two": two}[term]))(np.linspace(-1, 2, 50)))
"""


def test_code_from_the_disk_calls_its_own_parts_and_not_others_of_their_name(tmp_path):
    source = tmp_path / "source.py"
    source.write_text(NAMESAKES)

    def run(*terms):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, str(source), *terms]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()

    [one] = run("one")  # compiles it, and its part with it
    two, again = run("two", "one")  # compiles another part, and takes the first from the disk
    assert again == one != two


def weighed(order, rates, table, flags, strength, several):
    """Numbers that depend on all arguments of a record."""
    scale, (first, inner) = several
    total = 0.0
    for k in range(order.size):
        total += table[order[k], 1] * rates[k]
    return total * strength + (100.0 if flags else 0.0) + scale * first + inner[0]


def test_a_loop_reads_all_kinds_of_arguments_from_a_record():
    loop = Entries(weighed, numba.float64, RecordCompiler, cache=False)
    table = np.asfortranarray(np.arange(12.0).reshape(6, 2))[::-1]
    order, rates = np.arange(6, dtype=np.uint32)[::2], np.array([0.5, 2.0], np.float32)
    rest = (table, True, np.float32(0.1), (2, (3.0, np.full(1, 7, np.int32))))
    arguments = order, rates, *rest
    kinds = tuple(map(numba.typeof, arguments))

    def call(function, given):
        return call_with_record(function, given, 1, 3, 1)  # the step sizes begin with that of term 1

    found = compiled(call)(loop.address(kinds), record(record_layout(kinds), arguments))
    assert found == pytest.approx(weighed(order[1:3], rates, *rest), rel=1e-6)
    assert loop.signatures == [kinds]
