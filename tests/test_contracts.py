"""The contracts between parts are declared: no part asks another whether it has a member."""

from __future__ import annotations

import ast
import inspect
import textwrap
import tomllib
from pathlib import Path

import hogwild
from hogwild.training.minimise import minimise

SOURCE = Path(hogwild.__file__).parent

# What may be asked of objects of others, by the name that is asked for.
OF_THE_PLATFORM = {
    "MADV_DONTNEED", "MADV_HUGEPAGE", "MADV_WILLNEED", "memfd_create", "sched_getaffinity", "sched_setaffinity",
    "reconfigure", "register_at_fork", "__file__", "__spec__", "bytes",
}  # fmt: skip
OF_NUMPY_AND_NUMBA = {
    "row_stack", "_cache_file", "_defn", "py_func", "inlined", "guarded", "tolist", "dtype", "nbytes",
}  # fmt: skip
OF_ARRAYS_AND_FRAMES = {
    "__arrow_c_array__",
    "iter_batches",
    "schema",
    "with_format",
    "features",
    "read_all",
    "tocoo",
    "tocsr",
    "toarray",
    "to_numpy",
    "collect_schema",
    "__arrow_c_stream__",
    "columns",
    "dtypes",
}
OF_GRAPHS = {"is_directed", "edges"}
OF_PYTORCH = {
    "__getitem__", "__getitems__", "__len__", "_fields", "batch_size",
    "batch_of",  # of a data set of the user's that makes whole batches itself
    "updates_in_backward",  # of a module: to import its class would load Numba in every worker
    "profile", "gathers_steps",
}  # fmt: skip
OF_FUNCTIONS_AND_ERRORS = {"__name__", "__notes__", "ctx", "actor_init_failed", "experiment", "status"}
# scikit-learn's contract: what is learnt is there after a fit.
OF_ESTIMATORS = {
    "_mean", "_reading", "_state", "_step", "classes_", "coef_", "feature_names_in_", "intercept_", "model_", "t_",
}  # fmt: skip
OF_HALF_MADE_OBJECTS = {"_pointer"}
ALLOWED = (
    OF_THE_PLATFORM | OF_NUMPY_AND_NUMBA | OF_ARRAYS_AND_FRAMES | OF_GRAPHS | OF_PYTORCH | OF_FUNCTIONS_AND_ERRORS
    | OF_ESTIMATORS | OF_HALF_MADE_OBJECTS
)  # fmt: skip


def probes() -> dict[str, list[str]]:
    """The names that ``hasattr`` and ``getattr`` ask for, and where."""
    found: dict[str, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id in ("hasattr", "getattr") and isinstance(node.args[1], ast.Constant):
                found.setdefault(node.args[1].value, []).append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    return found


# Calls that write a file by themselves: all output goes through hogwild.files, which knows links, devices and pipes.
WRITES = {"write_text", "write_bytes", "touch", "mkstemp", "NamedTemporaryFile"}
# Files within a folder that is not at its place yet (files.new_folder).
WITHIN_NEW_FOLDERS = {"data/packing"}


def test_output_goes_through_one_module() -> None:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        where = path.relative_to(SOURCE)
        if where.name == "files.py" or str(where.parent) in WITHIN_NEW_FOLDERS:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                modes = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
                opens = node.func.attr == "open" and any(set(mode) & set("wax") and len(mode) < 4 for mode in modes)
                if node.func.attr in WRITES or opens:
                    found.append(f"{where}:{node.lineno}")
    assert not found, f"write with files.replacing, write_file or appending: {found}"


def test_no_part_is_asked_what_it_has() -> None:
    unknown = {name: where for name, where in probes().items() if name not in ALLOWED}
    assert not unknown, f"declare these in the class they are asked of: {unknown}"


def test_the_list_has_nothing_that_is_not_asked_any_more() -> None:
    assert not ALLOWED - probes().keys()


def test_minimise_fits_on_a_screen_and_knows_no_kinds() -> None:
    function = ast.parse(textwrap.dedent(inspect.getsource(minimise))).body[0]
    assert isinstance(function, ast.FunctionDef)
    code = [node for node in function.body if not isinstance(node, ast.Expr)]
    lines = sum(node.end_lineno - node.lineno + 1 for node in code)
    assert lines + len(function.args.args) + len(function.args.kwonlyargs) < 60
    assert not any(isinstance(node, (ast.If, ast.IfExp, ast.Match)) for node in ast.walk(function))


def imports(path: Path, modules: set[str]) -> set[str]:
    """The modules of the package that a module imports when it is imported itself."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in modules else node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & modules


def test_imports_form_no_circle() -> None:
    paths = {
        ".".join(("hogwild", *path.relative_to(SOURCE).with_suffix("").parts)): path for path in SOURCE.rglob("*.py")
    }
    paths = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    needs = {name: imports(path, set(paths)) - {name} for name, path in paths.items()}
    while free := [name for name, others in needs.items() if not others & needs.keys()]:
        for name in free:
            del needs[name]
    assert not needs, f"these import each other, or modules that do: {sorted(needs)}"


def test_the_picture_of_the_layers_is_the_contract() -> None:
    root = Path(__file__).parent.parent
    contract = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    picture = (root / "docs" / "explanation" / "design.md").read_text().partition("## Layers")[2].splitlines()
    shown = [line.strip().partition("  ")[0].strip() for line in picture if line.startswith("    ")]
    assert shown == [layer.replace("hogwild.", "") for layer in contract]
