"""Compilation of Python functions to machine code.

Losses, rules and ways of sharing parameters are small plain functions. A kernel is written once, and calls them by
global *names*. :func:`specialise` makes a compiled copy of a kernel in which these names refer to the given functions.
The copy is compiled on its first call and kept on disk. The name of the copy on disk contains a digest of all its code.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from hogwild.errors import ParameterError

try:
    import numba
except ValueError as error:  # It raises one for variables that make no sense.
    raise ParameterError(f"numba does not start ({error}). Check the variables NUMBA_... of the environment.") from None
from numba import types
from numba.core.caching import NullCache
from numba.core.ccallback import CFunc
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock

from hogwild.kernel_cache import EntryCompiler, PartCompiler, cache_of, kept_on_disk

if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
    raise ParameterError("Nothing runs without compiled code: unset the environment variable NUMBA_DISABLE_JIT.")

# A process that is forked while another thread compiles has a locked compiler for ever, because it lacks that thread.
# So a fork waits for the end of the compilation.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )

if TYPE_CHECKING:
    from _hashlib import HASH

Function = Callable[..., Any]

# Multiply-adds may be fused. Nothing else about floating point is relaxed: NaN must remain visible to the divergence
# guard, and one seed must give the same bits.
OPTIONS: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy", "fastmath": {"contract"}}
UNFUSED = {**OPTIONS, "fastmath": False}
REORDERED = {**OPTIONS, "fastmath": {"contract", "reassoc", "nsz", "arcp"}}
ARITHMETIC = {"fused": OPTIONS, "separate": UNFUSED, "reordered": REORDERED}
# The wrapper through which Python calls a function is not compiled: that takes as long as the function itself.
UNCALLED: dict[str, Any] = {"no_cpython_wrapper": True, "pipeline_class": PartCompiler}


def compiled(function: Function) -> Any:
    """Compile a function on its first call, keep the result on disk, and run it without the global interpreter lock.

    >>> @compiled
    ... def double(x):
    ...     return 2 * x
    >>> double(21)
    42
    """
    dispatcher = numba.njit(**OPTIONS)(function)
    return kept_on_disk(dispatcher, function, digest_of) if _in_a_file(function) else dispatcher


def is_cached(function: Any) -> bool:
    """Return whether a function is compiled already, in this process or on disk.

    >>> def negative(x):
    ...     return -x
    >>> kernel = specialise(negative, cache=False)
    >>> is_cached(kernel), kernel(1), is_cached(kernel)
    (False, -1, True)
    """
    index = index_file(function)
    return bool(function.signatures) or (index is not None and index.exists())


def index_file(function: Any) -> Path | None:
    """Return the file that lists the machine code of a compiled function; None if it is not kept on disk."""
    file = getattr(function._cache, "_cache_file", None)
    return None if file is None else Path(file._index_path)


def _in_a_file(function: Function) -> bool:
    return not function.__code__.co_filename.startswith("<")


def compiled_part(function: Function) -> Any:
    """Return a function that compiled functions can call, and Python cannot.

    The function is compiled as a part of its callers, without a wrapper for Python.

    >>> @compiled_part
    ... def square(x):
    ...     return x * x
    >>> @compiled
    ... def fourth(x):
    ...     return square(square(x))
    >>> fourth(3)
    81
    """
    return numba.njit(**OPTIONS, **UNCALLED)(function)


def bind(template: Function, **parts: Any) -> Function:
    """Return a copy of ``template`` in which each global name in ``parts`` refers to the given function or number.

    >>> def shout(text):
    ...     return change(text) + "!"
    >>> bind(shout, change=str.upper)("hey")
    'HEY!'
    """
    copy = FunctionType(
        template.__code__, {**template.__globals__, **parts}, template.__name__, template.__defaults__,
        template.__closure__,
    )  # fmt: skip
    copy.__module__, copy.__qualname__ = template.__module__, template.__qualname__
    copy.__kwdefaults__ = template.__kwdefaults__
    copy.__dict__.update(template.__dict__)
    return copy


def raises(function: Function) -> bool:
    """Return whether a function, or a function that it calls, has a statement ``raise`` or ``assert``.

    Compiled code that stops there leaves locks and turns behind, and other workers wait for them for ever.

    >>> def root(x):
    ...     assert x >= 0
    ...     return x**0.5
    >>> raises(root), raises(lambda x: 2 * root(x)), raises(lambda x: 2 * x)
    (True, True, False)
    """
    return _raises(function, set())


def _raises(function: object, seen: set[int]) -> bool:
    function = getattr(function, "py_func", function)
    if not isinstance(function, FunctionType) or id(function) in seen:
        return False
    seen.add(id(function))
    called: list[object] = [cell.cell_contents for cell in function.__closure__ or ()]
    for code in _codes(function.__code__):
        modules: list[ModuleType] = []
        for each in dis.get_instructions(code):
            if each.opname == "RAISE_VARARGS":
                return True
            if each.opname == "LOAD_GLOBAL":
                found = function.__globals__.get(each.argval)
                if isinstance(found, ModuleType):
                    modules.append(found)
                else:
                    called.append(found)
        # Of functions of a module, as in ``module.function(x)``, compiled code calls those that are compiled.
        members = [vars(module).get(name) for module in modules for name in code.co_names]
        called += [member for member in members if hasattr(member, "py_func")]
    return any(_raises(each, seen) for each in called)


def with_guard(function: Function, guarded: Function) -> Function:
    """Mark a function that kernels on processors call in another form, ``guarded``, which ends without an exception.

    GPUs and Python call the function itself. Kernels for GPUs cannot catch exceptions.

    >>> def inverse(x):
    ...     return x**-1
    >>> def inverse_or_zero(x):
    ...     try:
    ...         return x**-1
    ...     except Exception:
    ...         return 0.0
    >>> twice = lambda x: 2 * part(x)
    >>> specialise(twice, cache=False, part=with_guard(inverse, inverse_or_zero))(0.0)
    0.0
    """
    function.guarded = guarded  # type: ignore[attr-defined]
    return function


def always_inline(function: Function) -> Function:
    """Mark a part of kernels to be inlined, whatever its size.

    The mark is for parts that are called for every row. An array is passed as about ten arguments, and passing two or
    three arrays takes as long as adding ten products. With all parts inlined, compilation would take twice as long.

    >>> @always_inline
    ... def square(x):
    ...     return x * x
    >>> bind(square).inlined
    True
    """
    function.inlined = True  # type: ignore[attr-defined]
    return function


@functools.cache
def constant(number: int) -> Function:
    """Return a function that returns ``number``; the compiler treats its result as a constant.

    >>> constant(2)()
    2
    """

    def number_known() -> int:
        return number

    return number_known


def specialise(template: Function, *, cache: bool = True, arithmetic: str = "fused", **parts: Function) -> Any:
    """Compile a copy of ``template`` in which each global name in ``parts`` refers to the given function.

    ``arithmetic`` is "fused" if multiply-adds round once, "separate" if every operation rounds, as in most other
    compiled code, and "reordered" if sums may be taken in any order, which vector instructions need.

    >>> def apply_twice(x):
    ...     return part(part(x))
    >>> def increment(x):
    ...     return x + 1
    >>> specialise(apply_twice, cache=False, part=increment)(40)
    42
    """
    return _specialised(template, cache, arithmetic, tuple(sorted(parts.items())))


@functools.cache
def entry(
    template: Function, arguments: tuple[types.Type, ...] = (types.voidptr,), *, cache: bool = True, **parts: Function
) -> Any:
    """Compile a copy of ``template`` as :func:`specialise` does, but as a C function, of one pointer by default.

    Threads of other libraries can call the function at its ``address``. Python can call it as its attribute ``ctypes``,
    which releases the global interpreter lock.

    >>> def set_first(address):
    ...     numba.carray(address, (1,), np.int64)[0] = number()
    >>> numbers = np.zeros(2, np.int64)
    >>> entry(set_first, number=constant(42)).ctypes(numbers.ctypes.data)
    >>> numbers
    array([42,  0])
    """
    copy = _named(template, "fused", tuple(sorted(parts.items())))
    return _c_function(copy, (arguments, types.void), Compiler, digest_of if cache and _in_a_file(template) else None)


class Entries:
    """C functions of a Python function, one for each tuple of types of its arguments, compiled when first needed.

    ``compiler`` determines which arguments the C functions have.
    """

    def __init__(self, function: Function, result: types.Type, compiler: type[EntryCompiler], *, cache: bool) -> None:
        self._copy, self._result, self._compiler = _named(function, "fused", ()), result, compiler
        # Machine code on disk is current only if the C function would be the same, too.
        keep = cache and _in_a_file(function)
        self._digest = functools.partial(digest_of, compiler.add_c_function) if keep else None
        self._cache = cache_of(self._copy, self._digest) if self._digest else NullCache()
        self._found: dict[tuple[types.Type, ...], CFunc] = {}

    @property
    def signatures(self) -> list[tuple[types.Type, ...]]:
        """Types of the arguments for which there is a C function."""
        return list(self._found)

    def address(self, arguments: tuple[types.Type, ...]) -> int:
        """Return the address of the C function for arguments of the given types."""
        if arguments not in self._found:
            signature = arguments, self._result
            self._found[arguments] = _c_function(self._copy, signature, self._compiler, self._digest)
        return cast(int, self._found[arguments].address)


def _c_function(
    copy: Function, signature: tuple[tuple[types.Type, ...], types.Type], compiler: type[Compiler],
    digest: Callable[..., str] | None,
) -> CFunc:  # fmt: skip
    """Compile a C function, and keep it on disk if a ``digest`` of the code is given."""
    options = {name: value for name, value in OPTIONS.items() if name in ("error_model", "fastmath")}
    function = CFunc(copy, signature, locals={}, options=options, pipeline_class=compiler)
    if digest:
        kept_on_disk(function, copy, digest)
    function.compile()
    return function


@functools.cache
def _specialised(template: Function, cache: bool, arithmetic: str, parts: tuple[tuple[str, Function], ...]) -> Any:
    copy = _named(template, arithmetic, parts)
    dispatcher = numba.njit(**ARITHMETIC[arithmetic])(copy)
    return kept_on_disk(dispatcher, copy, digest_of) if cache else dispatcher


def _named(template: Function, arithmetic: str, parts: tuple[tuple[str, Function], ...]) -> Function:
    """Return a copy of a function with its parts, under its name in Numba's cache on disk."""
    copy = _with_calls_compiled(bind(template, **dict(parts)), arithmetic)
    copy.__qualname__ = f"{template.__name__}_{arithmetic}_{digest_of(copy)}"
    return copy


@functools.cache
def _compiled_part(function: Function, arithmetic: str) -> Any:
    function = getattr(function, "guarded", function)
    copy = _with_calls_compiled(function, arithmetic)
    # Machine code from the disk includes its parts, by name. Of two parts with the same name, the linker would use the
    # first for both.
    copy.__qualname__ = f"{function.__name__}_{arithmetic}_{digest_of(copy)}"
    inline = getattr(function, "inlined", False)
    return numba.njit(**ARITHMETIC[arithmetic], **UNCALLED, forceinline=inline)(copy)


def _with_calls_compiled(function: Function, arithmetic: str) -> Function:
    """Return a copy of a function in which the plain Python functions that it calls are compiled."""
    called = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    copy = bind(
        function, **{n: _compiled_part(f, arithmetic) for n, f in called.items() if isinstance(f, FunctionType)}
    )
    if not copy.__closure__:
        return copy
    cells = tuple(
        CellType(_compiled_part(cell.cell_contents, arithmetic))
        if isinstance(cell.cell_contents, FunctionType)
        else cell
        for cell in copy.__closure__
    )
    found = FunctionType(copy.__code__, copy.__globals__, copy.__name__, copy.__defaults__, cells)
    found.__kwdefaults__ = copy.__kwdefaults__
    return found


# What a digest tells apart by its text: numbers, texts and types.
_CONSTANTS = (int, float, str, bytes, tuple, list, dict, frozenset, type, np.generic, np.dtype, types.Type)


def digest_of(*functions: Function) -> str:
    """Return a digest of the compiled code, so that a changed loss never uses the machine code of the old one."""
    sha = hashlib.sha256()
    for function in functions:
        _feed(sha, function, set())
    return sha.hexdigest()[:16]


def _feed(sha: HASH, function: object, seen: set[int]) -> None:
    # The Python function of a compiled function (``py_func``) or of an intrinsic (``_defn``).
    function = getattr(function, "py_func", getattr(function, "_defn", function))
    if not isinstance(function, FunctionType) or id(function) in seen:
        return
    seen.add(id(function))
    sha.update(b"inlined" * getattr(function, "inlined", False))
    _feed_code(sha, function.__code__)
    # The digest includes the functions that this one calls, and the constants that it reads or closes over.
    read = {name: function.__globals__.get(name) for name in _names(function.__code__)}
    closed = zip(
        function.__code__.co_freevars, (cell.cell_contents for cell in function.__closure__ or ()), strict=True
    )
    for name, value in [*sorted(read.items()), *closed, ("=", function.__defaults__), ("*", function.__kwdefaults__)]:
        if isinstance(value, _CONSTANTS):
            sha.update(f"{name}={value!r}".encode())
        elif isinstance(value, np.ndarray):
            sha.update(f"{name}={value.dtype}{value.shape}".encode() + value.tobytes())
        else:
            _feed(sha, value, seen)


def _feed_code(sha: HASH, code: CodeType) -> None:
    sha.update(code.co_code)
    constants = [each for each in code.co_consts if not isinstance(each, CodeType)]
    # A docstring is the first constant. It is not part of the digest, so that its wording does not recompile a kernel.
    constants = constants[1:] if constants and isinstance(constants[0], str) else constants
    sha.update(repr((code.co_name, code.co_names, constants)).encode())
    for inner in _inner(code):
        _feed_code(sha, inner)


def _names(code: CodeType) -> set[str]:
    """Return the global names that a function and the functions inside it use."""
    return set().union(*(each.co_names for each in _codes(code)))


def _codes(code: CodeType) -> list[CodeType]:
    """Return the code of a function and of the functions inside it."""
    return [code, *(each for inner in _inner(code) for each in _codes(inner))]


def _inner(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]
