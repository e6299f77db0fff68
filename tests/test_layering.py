"""The house rules of the architecture: who may import whom, and what no file may do.

The table is that of docs/architecture.md.  Packages that do not exist yet are simply not there.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import t2s
from tests.sources import PACKAGE, ROOT, files, nodes, tree

pytestmark = [pytest.mark.slow, pytest.mark.structure]  # run with the linters

# everything below the driver, which imports consumers at their first use
LIBRARY = frozenset(
    {"core", "func", "graph", "llvm", "reduction", "spatial", "sparse_repr", "simulator", "report"}
    | {"explore", "design_space", "backends", "patterns", "capability", "plan", "libraries"}
    | {"loops"}
)
# what the folder of a backend may import, none of the others among it
BACKEND = frozenset({"core", "graph", "backends.base", "backends.text"})
KERNELS = BACKEND | {"backends.kernels"}  # kernels of loops and channels, in dialects of C
# what each package may import besides itself; a dotted name allows that module alone
MAY_IMPORT: dict[str, frozenset[str]] = {
    "core": frozenset(),
    "func": frozenset({"core"}),
    "graph": frozenset({"core"}),
    "patterns": frozenset({"core"}),
    "reduction": frozenset({"core", "func", "graph"}),
    "spatial": frozenset({"core", "func", "reduction", "graph"}),
    "sparse_repr": frozenset({"core", "func", "reduction", "graph", "patterns"}),
    "capability": frozenset({"core", "sparse_repr"}),
    # the kit that writes and compiles LLVM, and the identifiers of text in C
    "loops": frozenset({"core", "sparse_repr", "llvm", "backends.text"}),
    "plan": frozenset({"core", "sparse_repr", "capability"}),
    # loops around calls as data; what compiles them is handed to libraries.  Functions of vectors
    # are compiled when they are first called, by the name of ``loops.machine``
    "libraries": frozenset(
        {"core", "sparse_repr", "capability", "loops.call_nest", "loops.machine"}
    ),
    "llvm": frozenset({"core"}),
    "simulator": frozenset({"core", "graph", "llvm"}),
    "report": frozenset({"core", "graph", "simulator"}),
    "explore": frozenset({"core", "graph", "simulator", "report"}),
    # what is searched is a Func, and its points are directives; the driver times them
    "design_space": frozenset({"core", "func", "graph", "spatial", "simulator", "explore"}),
    "driver.product": frozenset({"core", "func", "reduction", "graph", "spatial", "sparse_repr"}),
    "driver": LIBRARY | {"__version__"},  # results of one version are not those of another
    "command": LIBRARY | {"driver"},
    "backends": frozenset({"core", "graph"}),
    "backends.text": frozenset({"core"}),
    "backends.kernels": BACKEND,
    "backends.opencl_fpga": KERNELS,
    "backends.verilog": BACKEND,
    "backends.vitis_hls": KERNELS,
    # the annealer tries millions of moves, so it is machine code, by the simulator's kit
    "backends.cgra_tia": BACKEND | {"llvm"},
    "backends.capstan": BACKEND | {"patterns"},
}
# the public names: they may import everything
PUBLIC = (
    *("__init__.py", "__main__.py", "cgra.py", "chips.py", "devices.py", "errors.py"),
    *("memories.py", "representation.py", "sparse.py", "triggered.py"),
    *("external/__init__.py", "external/call.py"),
)
# packages whose files may import inside functions, so that ``import t2s`` is fast
LATE = ("driver", "command")
# methods of a graph that print and write it, by the files that know all of its classes
LATE_FILES = ("graph/graph.py",)

# third-party packages that are kept in some folders, or in one file of each
CONFINED = {
    "islpy": (("core/", "isl.py"),),
    "jinja2": (
        ("backends/opencl_fpga/", "emit.py"),
        ("backends/vitis_hls/", "emit.py"),
        ("report/page/", "render.py"),
    ),
    "llvmlite": (("llvm/", "compile.py"),),
    "z3": (("capability/", "solver.py"),),
    "distributed": (("design_space/", "workers.py"),),
    "ray": (("design_space/", "workers.py"),),
    "numba": (),  # seconds of compiling, for each kernel on each new machine
}
PRINTS = ("command/main.py",)
READS_ENVIRONMENT = (
    "command/main.py",
    "backends/opencl_fpga/emulator.py",
    "llvm/compile.py",  # where the user's cache is
)
HEAVY = {
    "perfetto",
    "google",
    "vcd",
    "numba",
    "llvmlite",
    "islpy",
    "sympy",
    "rich",
    "jinja2",
    "pyopencl",
    "z3",
    "dask",
    "distributed",
    "ray",
}


def _name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


SOURCES = files("t2s")
EVERYTHING = [
    path for folder in ("t2s", "tests", "examples", "benchmarks") for path in files(folder)
]


def _imports(part: ast.AST) -> Iterator[tuple[str, int]]:
    """Dotted names of everything imported; ``from a.b import c`` gives ``a.b.c``."""
    for node in nodes(part):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)


def _package_of(path: Path) -> str:
    """The row of the table a file belongs to."""
    folders = path.relative_to(PACKAGE).parts[:-1]
    inner = ".".join(folders[:2])
    return inner if inner in MAY_IMPORT else ".".join(folders[:1])


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _allowed(path: Path, module: str) -> bool:
    """Whether ``path`` may import ``module``, named without the leading ``t2s.``."""
    if _name(path) in PUBLIC:
        return True
    package = _package_of(path)
    if not module or module.partition(".")[0] in t2s._MODULES:  # public names
        return package == "command"
    if package == "backends":  # not its siblings' insides
        return _within(module, "backends.base") or any(
            _within(module, name) for name in MAY_IMPORT[package]
        )
    return any(_within(module, name) for name in (package, *MAY_IMPORT[package]))


def _calls_print(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    )


def _reads_environment(node: ast.AST) -> bool:
    names = {"environ", "environb", "getenv"}
    if isinstance(node, ast.ImportFrom) and node.module == "os":
        return any(alias.name in names for alias in node.names)
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
        and node.attr in names
    )


def _of_t2s(part: ast.AST) -> Iterator[tuple[str, int]]:
    for module, line in _imports(part):
        if _within(module, "t2s"):
            yield module.removeprefix("t2s").removeprefix("."), line


def _functions(part: ast.AST) -> Iterator[ast.AST]:
    for node in nodes(part):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node


def test_every_package_is_in_the_table() -> None:
    inner = [path for path in SOURCES if _name(path) not in PUBLIC]
    assert {_package_of(path) for path in inner} <= set(MAY_IMPORT)
    assert {_name(path).partition("/")[0].removesuffix(".py") for path in SOURCES} == {
        *t2s._MODULES,
        *("__init__", "__main__"),
        *(package.partition(".")[0] for package in MAY_IMPORT),
    }


@pytest.mark.slow
def test_imports_go_down_the_table() -> None:
    wrong = [
        f"{_name(path)}:{line} imports t2s.{module}"
        for path in SOURCES
        for module, line in _of_t2s(tree(path))
        if not _allowed(path, module)
    ]
    assert not wrong


@pytest.mark.slow
def test_imports_are_absolute_and_at_the_top() -> None:
    relative = [
        f"{_name(path)}:{line} imports {module}"
        for path in SOURCES
        for module, line in _imports(tree(path))
        if module.startswith(".")
    ]
    local = [
        f"{_name(path)}:{line} imports t2s.{module} inside a function"
        for path in SOURCES
        if _name(path) not in (*PUBLIC, *LATE_FILES) and _package_of(path) not in LATE
        for function in _functions(tree(path))
        for module, line in _of_t2s(function)
    ]
    assert not relative + local


def test_third_party_packages_have_one_place() -> None:
    wrong = [
        f"{_name(path)}:{line} imports {module}"
        for path in SOURCES
        for module, line in _imports(tree(path))
        for package, places in CONFINED.items()
        if _within(module, package)
        and not any(
            _name(path).startswith(folder) and file in ("", path.name) for folder, file in places
        )
    ]
    assert not wrong


def test_nothing_prints_or_reads_the_environment() -> None:
    wrong = [
        f"{_name(path)}:{getattr(node, 'lineno', '?')}"
        for path in SOURCES
        for node in nodes(tree(path))
        if (_calls_print(node) and _name(path) not in PRINTS)
        or (_reads_environment(node) and _name(path) not in READS_ENVIRONMENT)
    ]
    assert not wrong


def test_examples_import_public_names_only() -> None:
    wrong = [
        f"{path.name}:{line} imports t2s.{module}"
        for path in files("examples")
        for module, line in _of_t2s(tree(path))
        if "." in module and module.partition(".")[0] not in t2s._MODULES
    ]
    assert not wrong


def test_file_sizes_and_names() -> None:
    long = {
        path.relative_to(ROOT).as_posix(): count
        for path in EVERYTHING
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > 800
    }
    assert not long
    vague = {"utils", "helpers", "tools", "common"}
    assert not [path for path in EVERYTHING if vague & {path.stem, path.parent.name}]


def _loaded_by(statement: str) -> set[str]:
    """The modules that are there after a statement in a new interpreter."""
    program = f"import sys; {statement}; sys.stdout.write(' '.join(sorted(sys.modules)))"
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_importing_t2s_imports_nothing_else() -> None:
    """Public names bring their modules at their first use; counted, as seconds are not exact."""
    loaded = _loaded_by("import t2s")
    assert {name for name in loaded if _within(name, "t2s")} == {
        "t2s",
        "t2s.core",
        "t2s.core.errors",
        "t2s.core.location",
    }
    assert "numpy" not in loaded


DENSE = """
import numpy as np, t2s
x, y, i = t2s.ImageParam(t2s.Float(32), 1, name='x'), t2s.Func('y'), t2s.Var('i')
loader, unloader = t2s.funcs('loader unloader')
y[i] = x[i] + 1.0
y.bound(i, 0, 8).isolate_producer(x, loader).isolate_consumer(unloader)
t2s.simulate(y, {'x': np.ones(8, np.float32)}, device='arria10', memory=None)
"""


def test_a_dense_run_loads_no_machines_and_no_models_of_memory() -> None:
    """Where there is no DRAM, all there is to know is what memories are and where tensors lie."""
    loaded = _loaded_by(f"exec({DENSE!r})")
    within = {name for name in loaded if _within(name, "t2s.simulator")}
    names = {name.removeprefix("t2s.simulator.") for name in within}
    assert {name for name in names if _within(name, "memory")} == {
        "memory",
        "memory.places",
        "memory.report",
        "memory.spec",
    }
    assert "native_arrays" in names
    assert not names & {"native_engine", "reference_engine", "values.machine_values"}
    assert not names & {f"times.{name}" for name in ("machine_times", "run_ahead", "stepping")}
    dram = DENSE.replace("memory=None", "memory='ddr4-2133'")
    assert "t2s.simulator.memory.dram" in _loaded_by(f"exec({dram!r})")


def test_a_definition_needs_no_lowering() -> None:
    """What ``from t2s import Func`` brings takes about as long as numpy: mostly dataclasses."""
    loaded = _loaded_by("from t2s import Float, Func, ImageParam, RDom, Var")
    assert not {name.split(".")[0] for name in loaded} & HEAVY
    ours = {name for name in loaded if _within(name, "t2s")}
    late = ("spatial.lowering", "spatial.pipeline", "sparse_repr", "report.page")
    late += ("driver.func_design", "driver.graph_design", "simulator", "backends.cgra_tia")
    assert {name for name in ours for room in late if _within(name, f"t2s.{room}")} == set()
    assert len(ours) <= 105


def test_type_checkers_know_all_public_names() -> None:
    """What is imported at its first use stands in ``if TYPE_CHECKING`` as well."""
    (block,) = (node for node in tree(PACKAGE / "__init__.py").body if isinstance(node, ast.If))
    told = {
        (str(node.module).removeprefix("t2s").removeprefix("."), alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert told == {*t2s._PLACES.values(), *(("", name) for name in t2s._MODULES)}
    assert set(t2s.__all__) <= {*t2s._PLACES, *t2s._MODULES, "__version__"}
    assert {*t2s._PLACES, *t2s._MODULES} <= set(dir(t2s))
    with pytest.raises(AttributeError, match="module 't2s' has no attribute 'Fnc'"):
        t2s.Fnc  # noqa: B018
