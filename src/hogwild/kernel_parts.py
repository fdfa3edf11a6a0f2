"""Compilation of kernel parts, up to the point where they can be linked into the kernels that call them.

Numba generates machine code of every function that it compiles, even of one that Python never calls. For the parts of a
kernel, that machine code takes a tenth of the compilation time, and memory that is never used.
"""

# mypy: disable-error-code="no-untyped-call, attr-defined"

from __future__ import annotations

from functools import partial
from typing import Any

from numba import _dynfunc
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class PartCompiler(CompilerBase):
    """Compiler with Numba's usual passes, except for the last one (lowering)."""

    def define_pipelines(self) -> list[Any]:
        """List the passes."""
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes = [
            (PartLowering, why) if each is NativeLowering else (each, why) for each, why in pipeline.passes
        ]
        pipeline._finalized = False
        pipeline.finalize()
        return [pipeline]


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(NativeLowering):
    """Lowering pass that makes optimised LLVM code of a function, ready to be linked, and no machine code."""

    _name = "hogwild_part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower a function into a library that is never loaded."""
        context = state.targetctx
        library = state.library = context.codegen().create_library(state.func_id.func_qualname)
        library._finalize_final_module = partial(_ready_to_be_linked, library)
        # Only this thread uses the compiler, because Numba holds its global lock.
        context.get_executable = _nothing_to_call
        try:
            done: bool = super().run_pass(state)
        finally:
            del context.get_executable
        return done


def _ready_to_be_linked(library: Any) -> None:
    library._finalize_dynamic_globals()
    library._verify_declare_only_symbols()
    library._finalized = True


def _nothing_to_call(library: Any, function: Any, environment: Any) -> Any:
    """Return a placeholder of a function that only other compiled functions call."""
    library._ensure_finalized()
    name = function.qualname.split(".")[-1]
    return _dynfunc.make_function(function.lookup_module(), name, "", 0, environment, (library,))
